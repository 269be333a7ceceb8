// Objects and lists of objects as columns of a table, which others read without parsing.
#include <cstdlib>
#include <gtest/gtest.h>

#include "io/base/table_file.h"
#include "io/run_folder/manifest.h"
#include "io/run_folder/read_rows.h"
#include "io/run_folder/row_line.h"
#include "io/run_folder/table_rows.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sheaf {
namespace {

using nlohmann::json;

Attribute nested_field(const char* name, ValueType type, std::vector<Attribute> fields = {}) {
  Attribute attribute{name, {}, type};
  attribute.fields = std::move(fields);
  return attribute;
}

Schema nested_schema() {
  using enum ValueType;
  Attribute price = nested_field("price", number);
  price.limits.multiple_of = 0.01;
  return {{{"Shirt",
            {nested_field("variants", entries,
                          {nested_field("size", text), price, nested_field("from", date),
                           nested_field("in_stock", boolean), nested_field("tags", list),
                           nested_field("box", object, {nested_field("width", integer)}),
                           nested_field("shops", entries, {nested_field("city", text)})}),
             nested_field("maker", object, {nested_field("name", text), nested_field("share", number)})}}}};
}

RowObject nested_object(std::vector<std::pair<std::string, RowValue>> values) {
  RowObject object;
  for (auto& [name, value] : values) object.values.push_back({name, {std::move(value)}});
  return object;
}

std::vector<Row> nested_rows() {
  RowObject small = nested_object({{"size", "S"},
                                   {"price", 12.5},
                                   {"from", "2026-03-01"},
                                   {"in_stock", true},
                                   {"tags", std::vector<std::string>{"new", "blue"}},
                                   {"box", nested_object({{"width", int64_t{7}}})},
                                   {"shops", std::vector<RowObject>{nested_object({{"city", "Oak"}}),
                                                                    nested_object({{"city", nullptr}})}}});
  small.values[1].answer.note = "rounded";
  small.values[1].answer.confidence = 0.75;
  small.values[0].answer.spans = {RowSpan{"title", 2, 3}};
  const RowObject empty = nested_object({{"size", "M"},
                                         {"price", int64_t{1200}},
                                         {"from", nullptr},
                                         {"in_stock", nullptr},
                                         {"tags", nullptr},
                                         {"box", nullptr},
                                         {"shops", nullptr}});
  return {{"a", ExtractedValues{"Shirt",
                                {{"variants", {std::vector<RowObject>{small, empty}}},
                                 {"maker", {nested_object({{"name", "Ü"}, {"share", 0.5}})}}}}},
          {"b", ExtractedValues{"Shirt", {{"variants", {nullptr}}, {"maker", {nullptr}}}}}};
}

class NestedTable : public testing::Test {
 protected:
  NestedTable() {
    job_.task.kind = TaskKind::extract;
    job_.task.schema = "schema.yaml";
    job_.output.confidence = job_.output.spans = true;
  }

  std::string write(const std::string& name) {
    const std::string path = folder_.path(name);
    const auto file = real_files().open(path);
    const auto format = name.ends_with(".arrow") ? OutputFormat::arrow : OutputFormat::parquet;
    const auto writer = write_table_rows(format, row_columns(job_, nested_schema(), false), *file);
    for (const Row& row : nested_rows()) writer->add(row, 100);
    writer->close();
    return path;
  }

  Job job_;
  const TempFolder folder_;
};

TEST_F(NestedTable, OthersReadItsColumns) {
  const std::string told = folder_.path("told.jsonl");
  const std::string command =
      "PYTHONPATH=build/deps/pyarrow python3 -c 'import sys, json, pyarrow as a, pyarrow.parquet as p; t = "
      "p.read_table(sys.argv[1]); assert a.ipc.open_file(sys.argv[2]).read_all().equals(t); "
      "print(json.dumps({f.name: str(f.type) for f in t.schema})); [print(json.dumps(r, default=str)) for r "
      "in "
      "t.to_pylist()]' " +
      write("a.parquet") + " " + write("a.arrow") + " >" + told;
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::vector<json> lines;
  const std::string all = read_text(told);
  for (size_t begin = 0; begin < all.size(); begin = all.find('\n', begin) + 1)
    lines.push_back(json::parse(all.substr(begin, all.find('\n', begin) - begin)));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(
      lines[0]["variants"],
      "list<element: struct<size: string, price: decimal128(38, 2), from: date32[day], in_stock: bool, tags: "
      "list<element: string>, box: struct<width: int64>, shops: list<element: struct<city: string>>>>");
  EXPECT_EQ(lines[0]["maker"], "struct<name: string, share: double>");
  const json& variants = lines[1]["variants"];
  ASSERT_EQ(variants.size(), 2u);
  EXPECT_EQ(variants[0],
            json::parse(R"({"size": "S", "price": "12.50", "from": "2026-03-01", "in_stock": true,
      "tags": ["new", "blue"], "box": {"width": 7}, "shops": [{"city": "Oak"}, {"city": null}]})"));
  EXPECT_EQ(variants[1],
            json::parse(R"({"size": "M", "price": "1200.00", "from": null, "in_stock": null, "tags": null,
      "box": null, "shops": null})"));
  EXPECT_EQ(lines[1]["maker"], (json{{"name", "Ü"}, {"share", 0.5}}));
  EXPECT_EQ(lines[1]["notes"], json::parse(R"([["variants[0].price", "rounded"]])"));
  EXPECT_EQ(lines[1]["confidence"], json::parse(R"([["variants[0].price", 0.75]])"));
  EXPECT_TRUE(lines[2]["variants"].is_null());
  EXPECT_TRUE(lines[2]["maker"].is_null());
}

TEST_F(NestedTable, IsReadBackAsItWasWritten) {
  for (const char* name : {"rows-00000.parquet", "rows-00000.arrow"}) {
    write(name);
    Manifest manifest;
    manifest.files.push_back({name, 2, std::ssize(read_text(folder_.path(name))), ""});
    std::vector<std::string> read, written;
    read_rows(folder_.path(""), manifest, nested_schema(),
              [&](const Row& row) { read.push_back(row_line(row)); });
    for (const Row& row : nested_rows()) written.push_back(row_line(row));
    EXPECT_EQ(read, written);
  }
}

TEST_F(NestedTable, ObjectsThatDifferBetweenCategoriesAreRefused) {
  Schema schema = nested_schema();
  schema.categories.push_back(schema.categories[0]);
  schema.categories[1].name = "Coat";
  EXPECT_EQ(error_of([&] { row_columns(job_, schema, false); }), "no error");
  schema.categories[1].attributes[0].fields[5].fields[0].type = ValueType::number;
  expect_refusal([&] { row_columns(job_, schema, false); },
                 {"attribute \"variants\" has a different type in category \"Coat\" than elsewhere"});
}

}  // namespace
}  // namespace sheaf

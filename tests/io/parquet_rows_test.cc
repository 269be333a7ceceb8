#include <gtest/gtest.h>

#include "io/base/parquet_file.h"
#include "io/run_folder/row_table.h"
#include "tests/io/temp_folder.h"

namespace sheaf {
namespace {

using nlohmann::json;

Schema make_schema() {
  Schema schema;
  schema.categories = {{"Tea", {{"Brand", {}, ValueType::text, {}}, {"Weight", {}, ValueType::number, {}}}},
                       {"Shoes", {{"Brand", {}, ValueType::text, {}}, {"Sizes", {}, ValueType::list, {}}}}};
  return schema;
}

Job make_job(const std::string& kind) {
  Job job;
  job.task.kind = kind;
  job.task.schema = "schema.yaml";
  return job;
}

std::vector<json> read_table(const std::string& path, const std::vector<TableColumn>& columns) {
  ParquetFile file(path);
  std::vector<std::string> names;
  for (const TableColumn& column : columns) names.push_back(column.name);
  file.select(names);
  std::vector<json> rows;
  while (const auto batch = file.next()) {
    EXPECT_EQ(batch->error, "");
    rows.insert(rows.end(), batch->cells.begin(), batch->cells.end());
  }
  return rows;
}

std::string column_types(const std::string& path) {
  const ParquetFile file(path);
  std::string text;
  for (const auto& column : file.columns()) text += column.name + " " + column.type + "; ";
  return text;
}

TEST(ParquetRows, ColumnsAreTypedByTheSchema) {
  const TempFolder folder;
  const std::string lines = folder.write(
      "rows.jsonl",
      R"({"id":"a","category":"Tea","values":{"Brand":"Ü","Weight":12}})"
      "\n"
      R"({"id":7,"category":"Shoes","values":{"Brand":null,"Sizes":["8","9"]},"notes":{"Brand":"cut"}})"
      "\n");
  const auto columns = row_columns(make_job("extract"), make_schema(), false);
  write_parquet_rows(lines, columns, *real_files().open(folder.path("a.parquet")));
  write_parquet_rows(lines, columns, *real_files().open(folder.path("b.parquet")));
  EXPECT_EQ(read_file(folder.path("a.parquet")), read_file(folder.path("b.parquet")));
  EXPECT_TRUE(column_types(folder.path("a.parquet"))
                  .starts_with(
                      "id string; category string; Brand string; Weight double; Sizes list<element: string>; "
                      "notes map<string, string"));
  const auto rows = read_table(folder.path("a.parquet"), columns);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["id"], "a");
  EXPECT_EQ(rows[0]["Brand"], "Ü");
  EXPECT_EQ(rows[0]["Weight"], 12.0);
  EXPECT_TRUE(rows[0]["Sizes"].is_null());
  EXPECT_TRUE(rows[0]["notes"].is_null());
  EXPECT_EQ(rows[1]["id"], "7");
  EXPECT_EQ(rows[1]["Sizes"], (json{"8", "9"}));
  EXPECT_TRUE(rows[1]["Weight"].is_null());
  EXPECT_FALSE(rows[1]["notes"].is_null());
}

TEST(ParquetRows, AnswersAreAListOfStructs) {
  const TempFolder folder;
  const std::string lines = folder.write(
      "rows.jsonl",
      R"({"id":3,"answers":[{"id":"q1","answer":"B","option":"two"},{"id":5,"answer":null,"note":"cut"}]})"
      "\n");
  const auto columns = row_columns(make_job("ask"), {}, true);
  write_parquet_rows(lines, columns, *real_files().open(folder.path("a.parquet")));
  const auto rows = read_table(folder.path("a.parquet"), columns);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["id"], 3);
  EXPECT_EQ(rows[0]["answers"][0]["option"], "two");
  EXPECT_EQ(rows[0]["answers"][1]["id"], "5");
  EXPECT_TRUE(rows[0]["answers"][1]["answer"].is_null());
}

TEST(ParquetRows, AFileWithoutRowsHasItsColumns) {
  const TempFolder folder;
  const auto columns = row_columns(make_job("ask"), {}, true);
  write_parquet_rows(folder.write("rows.jsonl", ""), columns, *real_files().open(folder.path("a.parquet")));
  EXPECT_EQ(ParquetFile(folder.path("a.parquet")).rows(), 0);
  EXPECT_EQ(ParquetFile(folder.path("a.parquet")).columns().size(), 2u);
}

TEST(ParquetRows, RefusesColumnsThatClash) {
  Schema schema = make_schema();
  schema.categories[1].attributes.push_back({"notes", {}, ValueType::text, {}});
  EXPECT_EQ(error_of([&] { row_columns(make_job("extract"), schema, false); }),
            "schema.yaml: attribute \"notes\" has the name of a column of every row; rename it, or use "
            "output.format "
            "jsonl");
  schema = make_schema();
  schema.categories[1].attributes.push_back({"Weight", {}, ValueType::list, {}});
  EXPECT_EQ(
      error_of([&] { row_columns(make_job("extract"), schema, false); }),
      "schema.yaml: attribute \"Weight\" has one type in category \"Shoes\" and another elsewhere; give them "
      "one, or use output.format jsonl");
}

/// A file that takes no more after its first bytes.
class FullFile : public OutputFile {
 public:
  void append(std::string_view) override {
    if (++writes > 1) fail("full");
  }
  void truncate(int64_t) override {}
  void sync() override {}
  int writes = 0;
};

TEST(ParquetRows, AFailingFileIsTold) {
  const TempFolder folder;
  FullFile full;
  EXPECT_EQ(error_of([&] {
              write_parquet_rows(folder.write("rows.jsonl", "{\"id\":1}\n"),
                                 row_columns(make_job("ask"), {}, true), full);
            }),
            "full");
  EXPECT_EQ(full.writes, 2) << "nothing is written after a failure";
}

}  // namespace
}  // namespace sheaf

#include "io/run_folder/table_rows.h"

#include <gtest/gtest.h>

#include "io/base/table_file.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/io/parquet_sample.h"

namespace sheaf {
namespace {

using nlohmann::json;

Schema make_schema() {
  Schema schema;
  schema.categories = {{"Tea", {{"Brand", {}, ValueType::text, {}}, {"Weight", {}, ValueType::number, {}}}},
                       {"Shoes", {{"Brand", {}, ValueType::text, {}}, {"Sizes", {}, ValueType::list, {}}}}};
  return schema;
}

Job make_job(TaskKind kind) {
  Job job;
  job.task.kind = kind;
  job.task.schema = "schema.yaml";
  return job;
}

std::vector<json> read_table(const std::string& path, const std::vector<RowColumn>& columns) {
  TableFile file(path);
  std::vector<std::string> names;
  for (const RowColumn& column : columns) names.push_back(column.table.name);
  file.select(names);
  std::vector<json> rows;
  while (const auto batch = file.next()) {
    EXPECT_EQ(batch->error, "");
    rows.insert(rows.end(), batch->cells.begin(), batch->cells.end());
  }
  return rows;
}

void write_table(const std::vector<Row>& rows, const std::vector<RowColumn>& columns,
                 const std::string& path) {
  const auto file = real_files().open(path);
  const auto format = path.ends_with(".arrow") ? OutputFormat::arrow : OutputFormat::parquet;
  const auto writer = write_table_rows(format, columns, *file);
  for (const Row& row : rows) writer->add(row, 100);
  writer->close();
}

std::string column_types(const std::string& path) {
  const TableFile file(path);
  std::string text;
  for (const auto& column : file.columns()) text += column.name + " " + column.type + "; ";
  return text;
}

TEST(TableRows, ColumnsAreTypedByTheSchema) {
  const TempFolder folder;
  const std::vector<Row> written = {
      {"a", ExtractedValues{"Tea", {{"Brand", {"Ü"}}, {"Weight", {12}}}}},
      {7, ExtractedValues{"Shoes",
                          {{"Brand", {nullptr, "cut"}}, {"Sizes", {std::vector<std::string>{"8", "9"}}}}}}};
  const auto columns = row_columns(make_job(TaskKind::extract), make_schema(), false);
  write_table(written, columns, folder.path("a.parquet"));
  write_table(written, columns, folder.path("b.parquet"));
  EXPECT_EQ(read_text(folder.path("a.parquet")), read_text(folder.path("b.parquet")));
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

TEST(TableRows, DatesAreDatesAndReadBackAsTheyAreWritten) {
  const TempFolder folder;
  Schema schema;
  schema.categories = {{"Tea", {{"Picked", {}, ValueType::date, {}}}}};
  Job job = make_job(TaskKind::extract);
  job.input.path = folder.path("corpus.parquet");
  write_parquet(job.input.path, {{"sold", "date", {0, 19000}}, {"text", "string", {"a", "b"}}});
  job.input.keep = {"sold"};
  const auto columns = row_columns(job, schema, true);
  std::vector<Row> written;
  for (const RowValue& value :
       {RowValue("2026-03-01"), RowValue("1066-10-14"), RowValue("9999-12-31"), RowValue(nullptr)})
    written.push_back({std::ssize(written), ExtractedValues{"Tea", {{"Picked", {value}}}}});
  for (size_t i = 0; i < written.size(); ++i) written[i].kept["sold"] = i == 0 ? json("2022-01-08") : json();
  for (const char* name : {"a.parquet", "a.arrow"}) {
    write_table(written, columns, folder.path(name));
    const std::string types = column_types(folder.path(name));
    EXPECT_NE(types.find("Picked date32[day]; "), std::string::npos) << types;
    EXPECT_NE(types.find("sold date32[day]; "), std::string::npos) << types;
    const auto rows = read_table(folder.path(name), columns);
    ASSERT_EQ(rows.size(), written.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto& value = std::get<ExtractedValues>(written[i].content).values[0].answer.value;
      EXPECT_EQ(rows[i]["Picked"], json(value_json(value)));
      EXPECT_EQ(rows[i]["sold"], json(written[i].kept["sold"]));
    }
  }
}

TEST(TableRows, SpansAreListsOfStructs) {
  const TempFolder folder;
  RowAnswer brand{"Oak"}, sizes{std::vector<std::string>{"8", "9"}}, none;
  brand.spans = {RowSpan{"title", 2, 5}};
  sizes.spans = {std::nullopt, RowSpan{"description", 0, 1}};
  none.spans.emplace();
  Job job = make_job(TaskKind::extract);
  job.output.spans = true;
  const auto columns = row_columns(job, make_schema(), true);
  write_table({{1, ExtractedValues{"Shoes", {{"Brand", brand}, {"Sizes", sizes}}}},
               {2, ExtractedValues{"Shoes", {{"Brand", none}, {"Sizes", none}}}}},
              columns, folder.path("a.parquet"));
  EXPECT_NE(column_types(folder.path("a.parquet")).find("struct<column: string, start: int64, end: int64>"),
            std::string::npos);
  const auto rows = read_table(folder.path("a.parquet"), columns);
  ASSERT_EQ(rows.size(), 2u);
  const json title{{"column", "title"}, {"start", 2}, {"end", 5}};
  const json description{{"column", "description"}, {"start", 0}, {"end", 1}};
  EXPECT_EQ(json(rows[0]["spans"]), (json{{"Brand", {title}}, {"Sizes", {nullptr, description}}}));
  EXPECT_EQ(json(rows[1]["spans"]), (json{{"Brand", json::array()}, {"Sizes", json::array()}}));
}

TEST(TableRows, AnswersAreAListOfStructs) {
  const TempFolder folder;
  RowAnswer chosen{"B"};
  chosen.option = "two";
  chosen.confidence = 0.5;
  const std::vector<Row> written = {{3, std::vector<QuestionAnswer>{{"q1", chosen}, {5, {nullptr, "cut"}}}}};
  const auto columns = row_columns(make_job(TaskKind::ask), {}, true);
  write_table(written, columns, folder.path("a.parquet"));
  const auto rows = read_table(folder.path("a.parquet"), columns);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["id"], 3);
  EXPECT_EQ(rows[0]["answers"][0]["option"], "two");
  EXPECT_EQ(rows[0]["answers"][0]["confidence"], 0.5);
  EXPECT_EQ(rows[0]["answers"][1]["id"], "5");
  EXPECT_TRUE(rows[0]["answers"][1]["answer"].is_null());
}

TEST(TableRows, ConfidenceIsAMapOfAttributes) {
  const TempFolder folder;
  RowAnswer sure{"Oak"};
  sure.confidence = 0.75;
  sure.null_margin = INFINITY;
  Job job = make_job(TaskKind::extract);
  job.output.confidence = true;
  const auto columns = row_columns(job, make_schema(), false);
  write_table({{"a", ExtractedValues{"Tea", {{"Brand", sure}}}}}, columns, folder.path("a.parquet"));
  const auto rows = read_table(folder.path("a.parquet"), columns);
  EXPECT_EQ(rows[0]["confidence"], (json{{"Brand", 0.75}}));
  EXPECT_EQ(rows[0]["null_margins"], (json{{"Brand", nullptr}}));
}

TEST(TableRows, AFileWithoutRowsHasItsColumns) {
  const TempFolder folder;
  const auto columns = row_columns(make_job(TaskKind::ask), {}, true);
  write_table({}, columns, folder.path("a.parquet"));
  EXPECT_EQ(TableFile(folder.path("a.parquet")).rows(), 0);
  EXPECT_EQ(TableFile(folder.path("a.parquet")).columns().size(), 2u);
}

TEST(TableRows, RefusesColumnsThatClash) {
  Schema schema = make_schema();
  schema.categories[1].attributes.push_back({"notes", {}, ValueType::text, {}});
  EXPECT_EQ(error_of([&] { row_columns(make_job(TaskKind::extract), schema, false); }),
            "schema.yaml: attribute \"notes\" has the name of a column that every row has; rename it, or use "
            "output.format jsonl");
  schema = make_schema();
  schema.categories[1].attributes.push_back({"Weight", {}, ValueType::list, {}});
  EXPECT_EQ(error_of([&] { row_columns(make_job(TaskKind::extract), schema, false); }),
            "schema.yaml: attribute \"Weight\" has a different type in category \"Shoes\" than elsewhere; "
            "use the same type, or use output.format jsonl");
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

TEST(TableRows, AFailedWriteIsReported) {
  FullFile full;
  const auto writer =
      write_table_rows(OutputFormat::parquet, row_columns(make_job(TaskKind::ask), {}, true), full);
  writer->add({1, std::vector<QuestionAnswer>{}}, 10);
  EXPECT_EQ(error_of([&] { writer->close(); }), "full");
  EXPECT_EQ(full.writes, 2) << "nothing is written after a failure";
}

TEST(TableRows, AWriterThatIsNotClosedWritesNothingMore) {
  const TempFolder folder;
  const std::string path = folder.path("a.parquet");
  {
    const auto file = real_files().open(path);
    const auto writer =
        write_table_rows(OutputFormat::parquet, row_columns(make_job(TaskKind::ask), {}, true), *file);
    writer->add({1, std::vector<QuestionAnswer>{}}, 10);
  }
  EXPECT_EQ(read_text(path), "PAR1");
}

TEST(TableRows, ArrowHoldsWhatParquetHolds) {
  const TempFolder folder;
  Job job = make_job(TaskKind::extract);
  job.output.logprobs = true;
  job.input.path = folder.write("corpus.jsonl", "{}\n");
  job.input.keep = {"stock"};
  const auto columns = row_columns(job, make_schema(), false);
  std::vector<Row> written;
  for (int i = 0; i < 200; ++i) {
    Row row{fmt::format("id-{}", i), ExtractedValues{"Tea", {{"Brand", {"Ü"}}, {"Weight", {i + 0.5}}}}};
    if (i % 3 == 0) row.content = ExtractedValues{"Shoes", {{"Sizes", {std::vector<std::string>{"8", "9"}}}}};
    row.kept["stock"] = i;
    written.push_back(row);
  }
  for (const char* name : {"a.parquet", "a.arrow", "b.arrow"})
    write_table(written, columns, folder.path(name));
  EXPECT_EQ(read_table(folder.path("a.arrow"), columns), read_table(folder.path("a.parquet"), columns));
  EXPECT_EQ(read_table(folder.path("a.arrow"), columns).size(), 200u);
  EXPECT_EQ(read_text(folder.path("a.arrow")), read_text(folder.path("b.arrow")));
  const TableFile table(folder.path("a.arrow"));
  EXPECT_EQ(table.about(), TableFile(folder.path("a.parquet")).about());
  EXPECT_EQ(table.about(), R"({"kept":["stock"]})");
  EXPECT_EQ(table.rows(), 200);
}

}  // namespace
}  // namespace sheaf

#include <gtest/gtest.h>

#include "io/base/table_file.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/io/corpus_records.h"
#include "tests/io/parquet_sample.h"

namespace sheaf {
namespace {

using nlohmann::json;

std::vector<SampleColumn> many_rows(int count, const std::string& text_type = "string") {
  std::vector<SampleColumn> columns = {
      {"sku", "int64", json::array()},
      {"category", "string", json::array()},
      {"title", text_type, json::array()},
      {"text", "string", json::array()},
  };
  for (int i = 0; i < count; ++i) {
    columns[0].values.push_back(i);
    columns[1].values.push_back(i % 3 ? "Tea" : "Coffee");
    columns[2].values.push_back(fmt::format("title {}", i));
    columns[3].values.push_back(i % 5 ? json(std::string(static_cast<size_t>(i % 90), 'x')) : json(nullptr));
  }
  return columns;
}

TEST(ParquetCorpus, ReadsEveryKindOfText) {
  TempFolder folder;
  for (const char* type : {"string", "large_string", "dictionary", "binary"}) {
    const std::string path = folder.path(std::string(type) + ".parquet");
    write_parquet(path, many_rows(200, type), {.rows_per_group = 70});
    const CorpusRecords rows = read_all(extract_job(path), &kSchema);
    ASSERT_EQ(rows.records.size(), 200u)
        << type << ": " << (rows.rejects.empty() ? "" : rows.rejects[0].reason);
    EXPECT_EQ(rows.records[7].id, json(7));
    EXPECT_EQ(rows.records[7].document, "title 7\nxxxxxxx");
    EXPECT_EQ(rows.records[10].document, "title 10");
    EXPECT_EQ(rows.records[199].place.row, 200);
    EXPECT_EQ(rows.records[199].place.file, path);
  }
}

TEST(ParquetCorpus, ReadsOtherCellsAsText) {
  TempFolder folder;
  const std::string path = folder.path("c.parquet");
  write_parquet(path, {{"sku", "double", {1.5, nullptr, 2.0}},
                       {"category", "dictionary", {"Tea", "Tea", "Coffee"}},
                       {"title", "date", {0, 0, 19000}},
                       {"text", "int64", {42, 43, nullptr}}});
  const CorpusRecords rows = read_all(extract_job(path), &kSchema);
  ASSERT_EQ(rows.records.size(), 2u);
  EXPECT_EQ(rows.records[0].document, "1970-01-01\n42");
  EXPECT_EQ(rows.records[0].id, json(1.5));
  ASSERT_EQ(rows.rejects.size(), 1u);
  EXPECT_EQ(rows.rejects[0].place.row, 2);
  EXPECT_EQ(rows.rejects[0].reason, "column \"sku\" is empty");
}

TEST(ParquetCorpus, InvalidTextRejectsOnlyItsRow) {
  TempFolder folder;
  const std::string path = folder.path("c.parquet");
  write_parquet(path, {{"sku", "string", {"a", "b", "c"}},
                       {"category", "string", {"Tea", "Tea", "Tee"}},
                       {"title", "binary", {"good", "bad \xC3(", "good"}},
                       {"text", "string", {"x", "x", "x"}}});
  const CorpusRecords rows = read_all(extract_job(path), &kSchema);
  EXPECT_EQ(rows.records.size(), 1u);
  ASSERT_EQ(rows.rejects.size(), 2u);
  EXPECT_EQ(rows.rejects[0].reason, "column \"title\" is not valid UTF-8 at byte 5");
  EXPECT_EQ(rows.rejects[0].id, json("b"));
  EXPECT_EQ(rows.rejects[1].reason, "category \"Tee\" is not in the schema; did you mean \"Tea\"?");
}

TEST(ParquetCorpus, ReadsQuestions) {
  TempFolder folder;
  const std::string path = folder.path("q.parquet");
  write_parquet(path, {{"context", "string", {"c1", "c2", "c3"}},
                       {"questions",
                        "questions",
                        {{{{"id", 1}, {"question", "Who?"}, {"options", {"a", "b"}}},
                          {{"id", nullptr}, {"question", "What?"}, {"options", nullptr}}},
                         nullptr,
                         json::array()}},
                       {"plain", "strings", {{"p", "q"}, json::array({"r"}), nullptr}}});
  const CorpusRecords rows = read_all(ask_job(path), nullptr);
  ASSERT_EQ(rows.records.size(), 1u);
  ASSERT_EQ(rows.records[0].questions.size(), 2u);
  EXPECT_EQ(rows.records[0].questions[0].options, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(rows.records[0].questions[0].id, json(1));
  EXPECT_EQ(rows.records[0].questions[1].id, "1/1");
  ASSERT_EQ(rows.rejects.size(), 2u);
  EXPECT_EQ(rows.rejects[0].reason, "column \"questions\" is null, not a list of questions");
  EXPECT_EQ(rows.rejects[1].reason, "the record has no questions");
  Job job = ask_job(path);
  job.input.questions = "plain";
  const CorpusRecords plain = read_all(job, nullptr);
  ASSERT_EQ(plain.records.size(), 2u);
  EXPECT_EQ(plain.records[0].questions[1].text, "q");
}

TEST(ParquetCorpus, ListsOfTextsAreDocumentsAndListsOfOneAreIdsAndCategories) {
  TempFolder folder;
  for (const char* name : {"c.parquet", "c.arrow"}) {
    const std::string path = folder.path(name);
    const std::vector<SampleColumn> columns = {
        {"sku", "strings", {json::array({"a"}), json::array({"b", "c"})}},
        {"category", "strings", {json::array({"Tea"}), json::array({"Tea"})}},
        {"title", "strings", {{"Oak", nullptr, "tea"}, json::array({"x"})}},
        {"text", "string", {"20 g", "y"}}};
    path.ends_with(".arrow") ? write_arrow(path, columns) : write_parquet(path, columns);
    const CorpusRecords rows = read_all(extract_job(path), &kSchema);
    ASSERT_EQ(rows.records.size(), 1u) << name;
    EXPECT_EQ(rows.records[0].id, "a");
    EXPECT_EQ(rows.records[0].category, "Tea");
    EXPECT_EQ(rows.records[0].document, "Oak\ntea\n20 g");
    ASSERT_EQ(rows.rejects.size(), 1u);
    EXPECT_EQ(rows.rejects[0].reason, "column \"sku\" is a list of 2; only a list of one can be used here");
  }
}

TEST(ParquetCorpus, PathsLeadIntoStructs) {
  TempFolder folder;
  for (const char* name : {"s.parquet", "s.arrow"}) {
    const std::string path = folder.path(name);
    const std::vector<SampleColumn> columns = {
        {"item", "item", {{{"sku", 7}, {"kind", {{"name", "Tea"}}}}, {{"sku", 8}, {"kind", nullptr}}}},
        {"title", "string", {"Oak", "Elm"}},
        {"text", "string", {"20 g", "y"}}};
    path.ends_with(".arrow") ? write_arrow(path, columns) : write_parquet(path, columns);
    Job job = extract_job(path);
    job.input.id = "item.sku";
    job.input.category = "item.kind.name";
    const CorpusRecords rows = read_all(job, &kSchema);
    ASSERT_EQ(rows.records.size(), 1u) << name;
    EXPECT_EQ(rows.records[0].id, 7);
    EXPECT_EQ(rows.records[0].category, "Tea");
    ASSERT_EQ(rows.rejects.size(), 1u);
    job.input.id = "item";
    EXPECT_NE(
        error_of([&] { open_corpus(job, &kSchema); }).find("; name one of its fields, such as item.sku"),
        std::string::npos);
  }
}

TEST(ParquetCorpus, RefusesColumnsThatDoNotFit) {
  TempFolder folder;
  const std::string path = folder.path("c.parquet");
  write_parquet(path, {{"sku", "int64", {1}},
                       {"Category", "string", {"a"}},
                       {"title", "strings", {{"t"}}},
                       {"text", "string", {"t"}}});
  Job job = extract_job(path);
  const auto error = [&] { return error_of([&] { open_corpus(job, &kSchema); }); };
  EXPECT_EQ(error(),
            fmt::format("job.yaml: input.category: {} has no column \"category\"; did you mean \"Category\"?",
                        path));
  job.input.category = "Category";
  EXPECT_EQ(error(), "no error") << "a list of texts is a document";
  Job ask = ask_job(path);
  ask.input.context = ask.input.questions = "text";
  EXPECT_EQ(error_of([&] { open_corpus(ask, nullptr); }),
            fmt::format("job.yaml: input.questions: column \"text\" of {} is string, not a list", path));
}

TEST(ParquetCorpus, ABrokenFooterNamesTheFile) {
  TempFolder folder;
  const std::string good = folder.path("a.parquet");
  write_parquet(good, many_rows(20));
  const std::string bytes = read_text(good);
  const auto error = [&](const std::string& name, const std::string& content) {
    const std::string path = folder.write(name, content);
    const std::string message = error_of([&] { open_corpus(extract_job(path), &kSchema); });
    EXPECT_TRUE(message.starts_with(path + ": this is not a readable Parquet file: ")) << message;
  };
  error("empty.parquet", "");
  error("short.parquet", "PAR1");
  error("cut.parquet", bytes.substr(0, bytes.size() / 2));
  error("text.parquet", "hello\n");
  std::string footer = bytes;
  for (size_t i = bytes.size() - 60; i < bytes.size() - 8; ++i) footer[i] = '\xff';
  for (size_t i = bytes.size() - 400; i < bytes.size() - 300; ++i) footer[i] = '\x55';
  error("footer.parquet", footer);
}

TEST(ParquetCorpus, ABrokenRowGroupCostsOnlyItsRows) {
  TempFolder folder;
  const std::string path = folder.path("a.parquet");
  write_parquet(path, many_rows(3000), {.rows_per_group = 1000, .checksums = true});
  std::string bytes = read_text(path);
  const size_t at = bytes.find("title 1500");
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  const CorpusRecords rows = read_all(extract_job(folder.write("b.parquet", bytes)), &kSchema);
  ASSERT_EQ(rows.rejects.size(), 1u);
  const Reject& lost = rows.rejects[0];
  const int64_t first = lost.place.row;
  EXPECT_GE(first, 1001);
  EXPECT_LE(first, 1501);
  EXPECT_TRUE(lost.reason.starts_with(fmt::format("rows {}-2000 cannot be read: ", first))) << lost.reason;
  EXPECT_EQ(rows.records.size(), static_cast<size_t>(first - 1 + 1000));
  EXPECT_EQ(rows.records.back().id, json(2999));
  EXPECT_EQ(rows.records.back().place.row, 3000);
}

TEST(ParquetCorpus, ReadsOnlyTheColumnsItNeeds) {
  TempFolder folder;
  const std::string path = folder.path("a.parquet");
  auto columns = many_rows(50);
  columns.push_back({"other", "string", json(std::vector<std::string>(50, "unwanted value"))});
  write_parquet(path, columns, {.checksums = true});
  std::string bytes = read_text(path);
  bytes[bytes.find("unwanted value")] ^= 1;
  EXPECT_EQ(read_all(extract_job(folder.write("b.parquet", bytes)), &kSchema).records.size(), 50u);
}

TEST(ParquetCorpus, ReadsEmptyTablesAndManyFiles) {
  TempFolder folder;
  write_parquet(folder.path("a.parquet"), many_rows(0));
  write_parquet(folder.path("b.parquet"), many_rows(130), {.compress = true, .dictionary = true});
  write_parquet(folder.path("c.parquet"), many_rows(0));
  write_parquet(folder.path("d.parquet"), many_rows(1));
  Job job = extract_job(folder.path("*.parquet"));
  job.input.id.clear();
  EXPECT_EQ(open_corpus(job, &kSchema)->records_expected(), 131);
  const CorpusRecords rows = read_all(job, &kSchema);
  ASSERT_EQ(rows.records.size(), 131u);
  EXPECT_EQ(rows.records.back().id, json(131));
  EXPECT_EQ(rows.records.back().place.row, 1);
  job.input.limit = 100;
  EXPECT_EQ(open_corpus(job, &kSchema)->records_expected(), 100);
  EXPECT_EQ(read_all(job, &kSchema).records.size(), 100u);
}

}  // namespace
}  // namespace sheaf

// One row per question, its context found by id in any row of the corpus.
#include <gtest/gtest.h>

#include "tests/errors.h"
#include "tests/files.h"
#include "tests/io/corpus_records.h"
#include "tests/io/parquet_sample.h"

namespace sheaf {
namespace {

using nlohmann::json;

Job by_id_job(const std::string& path) {
  Job job;
  job.file = "job.yaml";
  job.input.path = path;
  job.input.id = "n";
  job.input.context = "text";
  job.input.context_id = "about";
  job.input.question = "q";
  return job;
}

std::vector<std::string> contexts_of(const CorpusRecords& rows) {
  std::vector<std::string> texts;
  for (const Record& record : rows.records) texts.push_back(record.document);
  return texts;
}

std::vector<std::string> reasons_of(const CorpusRecords& rows) {
  std::vector<std::string> reasons;
  for (const Reject& reject : rows.rejects) reasons.push_back(reject.reason);
  return reasons;
}

TEST(Contexts, AreFoundInAnyRowOfAnyFile) {
  TempFolder folder;
  folder.write("a.jsonl", R"({"n": 1, "about": "x", "q": "1?"}
{"n": 2, "about": 7, "q": "2?", "text": null}
{"n": 3, "about": "x", "q": "3?", "text": "The x."}
broken
{"n": 4, "about": "x", "q": "4?", "text": "  "}
)");
  folder.write("b.jsonl", R"({"n": 5, "about": "7", "q": "5?", "text": "Text of the text 7."}
{"n": 6, "about": 7, "q": "6?", "text": "Text of the number 7."}
)");
  const Job job = by_id_job(folder.path());
  const CorpusRecords rows = read_all(job, nullptr);
  const std::string x = "The x.", number = "Text of the number 7.", text = "Text of the text 7.";
  EXPECT_EQ(contexts_of(rows), (std::vector<std::string>{x, number, x, x, text, number}));
  ASSERT_EQ(rows.rejects.size(), 1u);
  EXPECT_EQ(rows.rejects[0].place.row, 4);
  EXPECT_EQ(rows.records[0].id, json(1));
  EXPECT_EQ(rows.records[0].questions[0].text, "1?");
  // Resuming in the middle, and a limit, do not hide the rows that have the texts.
  const auto corpus = open_corpus(job, nullptr);
  corpus->skip_to(4);
  EXPECT_EQ(contexts_of(read_all(*corpus)), (std::vector<std::string>{x, text, number}));
  Job first = job;
  first.input.limit = 2;
  EXPECT_EQ(contexts_of(read_all(first, nullptr)), (std::vector<std::string>{x, number}));
}

TEST(Contexts, RowsThatDoNotFitAreRejects) {
  TempFolder folder;
  const std::string path = folder.write("a.jsonl", R"({"n": 1, "about": "x", "q": "1?", "text": "One."}
{"n": 2, "about": "x", "q": "2?", "text": "Two."}
{"n": 3, "about": "x", "q": "3?", "text": "One."}
{"n": 4, "about": "y", "q": "4?"}
{"n": 5, "about": null, "q": "5?"}
{"n": 6, "q": "6?"}
{"n": 7, "about": "x", "q": "7?", "text": {"One": 1}}
{"n": 8, "about": "x", "q": ""}
)");
  const CorpusRecords rows = read_all(by_id_job(path), nullptr);
  EXPECT_EQ(contexts_of(rows), (std::vector<std::string>{"One.", "One."}));
  EXPECT_EQ(reasons_of(rows), (std::vector<std::string>{
                                  fmt::format("context \"x\" has a different text in record 1 of {}", path),
                                  "no record has the text of context \"y\"", "column \"about\" is empty",
                                  "column \"about\" is missing", "column \"text\" is an object, not text",
                                  "the question is empty"}));
  EXPECT_EQ(rows.rejects[0].id, json(2));
}

TEST(Contexts, ACorpusWithoutAnyTextIsRefused) {
  TempFolder folder;
  const std::string path = folder.write("a.jsonl", "{\"n\": 1, \"about\": \"x\", \"q\": \"1?\"}\n");
  EXPECT_EQ(error_of([&] { open_corpus(by_id_job(path), nullptr); }),
            "job.yaml: input.context: no record has text in column \"text\"");
  Job job = by_id_job(path);
  job.input.context_id = "abuot";
  EXPECT_EQ(
      error_of([&] { open_corpus(job, nullptr); }),
      fmt::format("job.yaml: input.context_id: {} has no column \"abuot\"; did you mean \"about\"?", path));
}

TEST(Contexts, MayBeMissingFromSomeParquetFiles) {
  TempFolder folder;
  write_parquet(
      folder.path("a.parquet"),
      {{"n", "int64", {1, 2, 3}}, {"about", "int64", {10, 20, 10}}, {"q", "string", {"1?", "2?", "3?"}}});
  write_parquet(folder.path("b.parquet"), {{"n", "int64", {4, 5}},
                                           {"about", "int64", {20, 10}},
                                           {"q", "string", {"4?", "5?"}},
                                           {"text", "string", {"Twenty.", "Ten."}}});
  const CorpusRecords rows = read_all(by_id_job(folder.path()), nullptr);
  EXPECT_EQ(contexts_of(rows), (std::vector<std::string>{"Ten.", "Twenty.", "Ten.", "Twenty.", "Ten."}));
  EXPECT_TRUE(rows.rejects.empty());
}

}  // namespace
}  // namespace sheaf

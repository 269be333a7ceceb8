// Rows with several documents and how relevant they are.
#include <cmath>
#include <gtest/gtest.h>

#include "tests/files.h"
#include "tests/io/corpus_records.h"
#include "tests/io/parquet_sample.h"

namespace sheaf {
namespace {

using nlohmann::json;

Job documents_job() {
  Job job;
  job.file = "job.yaml";
  job.input.id = "id";
  job.input.documents = "documents";
  job.input.question = "question";
  return job;
}

CorpusRecords read_rows(Job job, const std::vector<std::string>& lines) {
  TempFolder folder;
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  job.input.path = folder.write("c.jsonl", text);
  return read_all(job, nullptr);
}

const std::string kThree =
    R"({"id": 1, "question": "Where is the mill?", "documents": ["Bread is baked.", )"
    R"({"title": "Mill", "text": "The mill is in Arn."}, {"text": "Arn is where a town is."}])";

TEST(Documents, HaveTitlesAndLexicalRelevance) {
  const CorpusRecords rows = read_rows(documents_job(), {kThree + "}"});
  ASSERT_EQ(rows.records.size(), 1u);
  const Record& record = rows.records[0];
  EXPECT_EQ(record.documents, (std::vector<std::string>{"Bread is baked.", "Mill\nThe mill is in Arn.",
                                                        "Arn is where a town is."}));
  EXPECT_EQ(whole_document(record),
            "Bread is baked.\n\nMill\nThe mill is in Arn.\n\nArn is where a town is.");
  const auto& relevance = record.questions[0].relevance;
  ASSERT_EQ(relevance.size(), 3u);
  EXPECT_GT(relevance[1], relevance[2]);
  EXPECT_GT(relevance[2], relevance[0]);
  for (const double value : relevance) EXPECT_TRUE(value > 0 && value < 1) << value;
}

TEST(Documents, GivenScoresAreNormalizedAndJoined) {
  Job job = documents_job();
  job.input.scores = "retrieval";
  job.input.scores_are = ScoreKind::dense;
  const std::string line = kThree + R"(, "retrieval": [-1, 0, 0.5], "rerank": [0, 0, 2]})";
  const CorpusRecords one = read_rows(job, {line});
  ASSERT_EQ(one.records.size(), 1u);
  EXPECT_EQ(one.records[0].questions[0].relevance, (std::vector<double>{1e-8, 0.5, 0.75}));
  job.input.rerank_scores = "rerank";
  job.input.rerank_scores_are = ScoreKind::logit;
  const CorpusRecords both = read_rows(job, {line});
  const auto& joined = both.records.at(0).questions[0].relevance;
  EXPECT_EQ(joined[0], 1e-8);
  EXPECT_NEAR(joined[1], 0.5, 1e-7);
  const double sigmoid = 1 / (1 + std::exp(-2.0));
  EXPECT_NEAR(joined[2], 2 * 0.75 * sigmoid / (0.75 + sigmoid), 1e-7);

  const CorpusRecords own = read_rows(
      documents_job(),
      {R"({"id": 1, "question": "q", "documents": [{"text": "a", "score": 0.25}, {"text": "b", "score": 1}]})"});
  EXPECT_EQ(own.records.at(0).questions[0].relevance, (std::vector<double>{0.25, 1 - 1e-8}));
}

TEST(Documents, TheMostRelevantAreKeptInTheirOrder) {
  Job job = documents_job();
  job.input.top_documents = 1;
  EXPECT_EQ(whole_document(read_rows(job, {kThree + "}"}).records.at(0)), "Mill\nThe mill is in Arn.");
  job.input.scores = "s";
  job.input.top_documents = 2;
  const CorpusRecords rows = read_rows(job, {kThree + R"(, "s": [0.5, 0.1, 0.9]})"});
  EXPECT_EQ(whole_document(rows.records.at(0)), "Bread is baked.\n\nArn is where a town is.");
  EXPECT_EQ(rows.records[0].questions[0].relevance, (std::vector<double>{0.5, 0.9}));
}

TEST(Documents, ABadRowIsRejectedAlone) {
  Job job = documents_job();
  job.input.scores = "s";
  const std::string good = kThree + R"(, "s": [0.5, 0.1, 0.9]})";
  const std::string head = R"({"id": 2, "question": "q", "documents": )";
  for (const auto& [line, reason] : std::vector<std::pair<std::string, std::string>>{
           {head + R"([], "s": []})", "the record has no documents"},
           {head + R"("one", "s": []})",
            "column \"documents\" is text, not a list of documents; write a JSON list"},
           {R"({"id": 2, "question": "q", "s": [1]})", "column \"documents\" is missing"},
           {head + R"(["a", " "], "s": [0, 1]})", "document 2 is empty"},
           {head + R"([{"title": "a"}], "s": [0]})", "document 1 has no \"text\""},
           {head + R"([["a"]], "s": [0]})", "document 1 is a list, not text"},
           {head + R"(["a", "b"], "s": [0.5]})", "column \"s\" has 1 score for 2 documents"},
           {head + R"(["a"], "s": 0.5})", "column \"s\" is a number, not a list of scores"},
           {head + R"(["a", "b"], "s": [0.5, null]})", "score 2 of column \"s\" is null, not a number"},
           {head + R"(["a"], "s": ["NaN"]})", "score 1 of column \"s\" is text, not a number"},
           {head + R"(["a"], "s": [7]})", "score 1 of column \"s\" is 7, which is not probability"}}) {
    const CorpusRecords rows = read_rows(job, {good, line, good});
    EXPECT_EQ(rows.records.size(), 2u) << line;
    ASSERT_EQ(rows.rejects.size(), 1u) << line;
    EXPECT_EQ(rows.rejects[0].reason, reason);
  }
  const CorpusRecords half =
      read_rows(documents_job(), {head + R"([{"text": "a"}, {"text": "b", "score": 1}]})",
                                  head + R"([{"text": "a", "score": 1}, "b"]})"});
  ASSERT_EQ(half.rejects.size(), 2u);
  EXPECT_EQ(half.rejects[0].reason, "document 2 has a score, unlike the documents before it");
  EXPECT_EQ(half.rejects[1].reason, "document 2 has no score, unlike the documents before it");
}

TEST(Documents, AreReadFromParquet) {
  TempFolder folder;
  Job job = documents_job();
  job.input.path = folder.path("c.parquet");
  job.input.scores = "s";
  job.input.scores_are = ScoreKind::sparse;
  const json texts{{"a", "b"}, {"a", "b"}, {"a"}};
  write_parquet(job.input.path, {{"id", "int64", {1, 2, 3}},
                                 {"question", "string", {"q", "q", "q"}},
                                 {"documents", "strings", texts},
                                 {"s", "doubles", "[[1, 0], [NaN, 1], [Inf]]"}});
  const CorpusRecords rows = read_all(job, nullptr);
  ASSERT_EQ(rows.records.size(), 1u);
  EXPECT_EQ(rows.records[0].documents, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(rows.records[0].questions[0].relevance, (std::vector<double>{0.5, 1e-8}));
  ASSERT_EQ(rows.rejects.size(), 2u);
  EXPECT_EQ(rows.rejects[0].reason, "score 1 of column \"s\" is not a finite number");

  job.input.scores.clear();
  job.input.scores_are = ScoreKind::probability;
  const json documents{{{{"text", "a"}, {"title", "A"}, {"score", 0.5}}, {{"text", "b"}, {"score", 0.25}}}};
  write_parquet(job.input.path,
                {{"id", "int64", {1}}, {"question", "string", {"q"}}, {"documents", "documents", documents}});
  const CorpusRecords own = read_all(job, nullptr);
  ASSERT_EQ(own.records.size(), 1u) << own.rejects.at(0).reason;
  EXPECT_EQ(own.records[0].documents, (std::vector<std::string>{"A\na", "b"}));
  EXPECT_EQ(own.records[0].questions[0].relevance, (std::vector<double>{0.5, 0.25}));
}

}  // namespace
}  // namespace sheaf

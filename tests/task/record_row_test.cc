// What a row says beyond what its task makes of the answers, and rows of documents asked part by part.
#include "core/task/record_row.h"

#include <gtest/gtest.h>

namespace sheaf {
namespace {

using Texts = std::vector<std::string>;

Row tea(std::vector<AttributeValue> values) {
  return {1, ExtractedValues{"Tea", std::move(values)}};
}

TEST(PartRows, AValueIsThatOfThePartThatFoundItBest) {
  const std::vector<Row> rows = {
      tea({{"Brand", {nullptr, "cut"}},
           {"Weight", {2}},
           {"Flavours", {Texts{"mint"}}},
           {"Origin", {nullptr, "first"}}}),
      tea({{"Brand", {"Oak"}},
           {"Weight", {3, "rounded"}},
           {"Flavours", {Texts{"lime", "mint"}}},
           {"Origin", {}}}),
      tea({{"Brand", {"Elm"}}, {"Weight", {}}, {"Flavours", {Texts{}}}, {"Origin", {}}})};
  const std::vector<std::vector<double>> scores = {
      {-0.1, -0.5, -1, -1}, {-0.9, -0.2, -2, -0.1}, {-0.3, -0.1, -0.1, -0.1}};
  EXPECT_TRUE(merge_part_rows(rows, scores) == tea({{"Brand", {"Elm"}},
                                                    {"Weight", {3, "rounded"}},
                                                    {"Flavours", {Texts{"mint", "lime"}}},
                                                    {"Origin", {nullptr, "first"}}}));
}

TEST(PartRows, NotesAndScoresStayWithTheirValues) {
  // One attribute, an answer of its own.
  const auto own = [](const RowValue& brand, double logprob, const char* raw) {
    RowAnswer answer{brand};
    answer.logprob = logprob;
    answer.raw = raw;
    return tea({{"Brand", answer}});
  };
  const std::vector<Row> rows = {own(nullptr, -1, " null"), own("Oak", -2, " \"Oak\"")};
  EXPECT_TRUE(merge_part_rows(rows, {{-0.1}, {-0.2}}) == rows[1]);
  // Whole objects.
  const auto whole = [](const RowValue& brand, double logprob, const char* raw) {
    return Row{1, ExtractedValues{"Tea", {{"Brand", {brand}}}, logprob, raw}};
  };
  EXPECT_TRUE(merge_part_rows({whole(nullptr, -1, "a"), whole("Oak", -2, "b")}, {{-0.1}, {-0.2}}) ==
              whole("Oak", -3, "a\nb"));
}

TEST(PartRows, ANullIsAsSureAsTheLeastSurePart) {
  const auto own = [](const RowValue& brand, double confidence) {
    RowAnswer answer{brand};
    answer.confidence = confidence;
    answer.null_margin = 1;
    return tea({{"Brand", answer}});
  };
  const auto merged = [](const std::vector<Row>& rows) {
    return std::get<ExtractedValues>(merge_part_rows(rows, {{-0.1}, {-0.2}}).content).values[0].answer;
  };
  EXPECT_EQ(merged({own(nullptr, 0.9), own(nullptr, 0.6)}).confidence, 0.6);
  EXPECT_EQ(merged({own(nullptr, 0.9), own("Oak", 0.95)}).confidence, 0.95);
  EXPECT_FALSE(merged({own("Elm", 0.9), own("Oak", 0.95)}).null_margin);
}

TEST(PartRows, AnAnswerIsThatOfThePartThatFoundItBest) {
  const auto row = [](const RowValue& first, const RowValue& second) {
    return Row{7, std::vector<QuestionAnswer>{{"a", {first}}, {"b", {second}}}};
  };
  const std::vector<Row> rows = {row(nullptr, "Rome"), row("1066", "Oslo")};
  EXPECT_TRUE(merge_part_rows(rows, {{-0.1, -0.2}, {-3, -0.4}}) == row("1066", "Rome"));
  const std::vector<Row> flat = {{7, RowAnswer{}}, {7, RowAnswer{"1066"}}};
  EXPECT_TRUE(merge_part_rows(flat, {{-0.1}, {-3}}) == flat[1]);
}

TEST(PartRows, OneScoreServesAllItsAnswers) {
  const auto row = [](const RowValue& first, const RowValue& second) {
    return Row{7, std::vector<QuestionAnswer>{{"a", {first}}, {"b", {second}}}};
  };
  const std::vector<Row> rows = {row("x", "Rome"), row("1066", "Oslo")};
  EXPECT_TRUE(merge_part_rows(rows, {{-0.3}, {-0.1}}) == rows[1]);
  EXPECT_TRUE(merge_part_rows(rows, {{}, {}}) == rows[0]);
}

/// Writes how many answers it got and what they begin with.
class EchoTask : public Task {
 public:
  std::string bin_name(const Record&) const override { return ""; }
  RecordParts parts(const Record&) override { return {}; }
  Row row(const Record& record, const std::vector<Answer>& answers) const override {
    std::vector<QuestionAnswer> list;
    for (const Answer& answer : answers) list.push_back({nullptr, {int64_t{answer.tokens[0]}}});
    return {record.id, std::move(list)};
  }
};

Row echoed(const std::vector<int64_t>& tokens) {
  std::vector<QuestionAnswer> list;
  for (const int64_t token : tokens) list.push_back({nullptr, {token}});
  return {"x", std::move(list)};
}

TEST(RecordRow, AddsWhatTheJobAsksFor) {
  Record record;
  record.id = "x";
  Outcome outcome;
  outcome.document_tokens = 90;
  outcome.seconds = 1.5;
  for (const TokenId token : {5, 6, 7, 8})
    outcome.answers.push_back({{token, 1}, Ending::delimiter, -token * 0.5});
  Job::Output output;
  const Row plain = echoed({5, 6, 7, 8});
  EXPECT_TRUE(record_row(EchoTask(), record, outcome, output) == plain);
  output.tokens = output.timing = true;
  outcome.cut_tokens = 30;
  Row more = plain;
  more.cut_tokens = 30;
  more.document_tokens = 90;
  more.answer_tokens = 8;
  more.seconds = 1.5;
  EXPECT_TRUE(record_row(EchoTask(), record, outcome, output) == more);
  outcome.parts = 2;
  outcome.cut_tokens = 0;
  Row merged = echoed({5, 6});
  merged.parts = 2;
  EXPECT_TRUE(record_row(EchoTask(), record, outcome, {}) == merged);
}

}  // namespace
}  // namespace sheaf

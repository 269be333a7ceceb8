// Metrics of LOFT's answer lists and of LongBench, on values worked out by hand from their scripts.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/metrics/metric.h"

namespace sheaf {
namespace {

using Texts = std::vector<std::string>;

std::vector<double> scores_of_item(const std::string& metric, const MetricItem& item) {
  return score_items(find_metric(metric), std::span(&item, 1), {0, 0}).items;
}

/// Subspan EM, EM and coverage.
std::vector<double> list_scores(const std::string& answer, const Texts& wanted) {
  MetricItem item;
  item.prediction = {answer};
  for (const std::string& each : wanted) item.references.push_back({each});
  return scores_of_item("answer-list", item);
}

using Scores3 = std::vector<double>;

TEST(AnswerLists, AreReadInEveryForm) {
  const Texts wanted = {"Oss", "The Mill", "Arn, the town"};
  for (const std::string answer :
       {"['Oss', 'mill', 'Arn, the town']", R"(Final Answer: ["Oss", "The Mill", "Arn, the town"].)",
        "Oss; the mill; arn, the town", "[\"Arn, the town\",\"Oss\",\"The Mill\"]"})
    EXPECT_EQ(list_scores(answer, wanted), (Scores3{1, 1, 1})) << answer;
  EXPECT_EQ(list_scores("['It's', 'Oss']", {"it's", "oss"}), (Scores3{1, 1, 1}));
}

TEST(AnswerLists, EveryWantedAnswerNeedsOneOfItsOwn) {
  EXPECT_EQ(list_scores("Oss, Arn", {"Oss", "Arn"}), (Scores3{1, 1, 1}));
  EXPECT_EQ(list_scores("Oss", {"Oss", "Arn"}), (Scores3{0, 0, 0.5}));
  EXPECT_EQ(list_scores("Oss, Arn, Dale", {"Oss", "Arn"}), (Scores3{1, 0, 1}));
  EXPECT_EQ(list_scores("Oss town, in Arn", {"Oss", "Arn"}), (Scores3{1, 0, 0})) << "parts are enough";
  EXPECT_EQ(list_scores("Oss Arn", {"Oss", "Arn"}), (Scores3{0, 0, 0})) << "one cannot stand for two";
  EXPECT_EQ(list_scores("[]", {"Oss"}), (Scores3{0, 0, 0}));
  MetricItem none;
  none.references = {{"Oss"}};
  EXPECT_EQ(scores_of_item("answer-list", none), (Scores3{0, 0, 0}));
  none.prediction = Texts();
  EXPECT_EQ(scores_of_item("answer-list", none), (Scores3{0, 0, 0}));
}

double longbench(const std::string& set, const std::string& answer, const Texts& references,
                 const Texts& classes = {}) {
  MetricItem item;
  item.category = set;
  item.prediction = {answer};
  for (const std::string& each : references) item.references.push_back({each});
  item.kinds = classes;
  return scores_of_item("longbench", item)[0];
}

TEST(LongBench, QuestionsAreScoredByWords) {
  EXPECT_EQ(longbench("hotpotqa", "The Mill", {"a mill", "town"}), 1);
  EXPECT_DOUBLE_EQ(longbench("qasper", "the mill of Arn", {"mill"}), 0.5);
  EXPECT_EQ(longbench("triviaqa", "\nOss\nPassage: more", {"oss"}), 1) << "the first line only";
  EXPECT_LT(longbench("narrativeqa", "Oss\nPassage: more", {"oss"}), 1);
}

TEST(LongBench, NumbersAreCounted) {
  EXPECT_EQ(longbench("passage_count", "There are 7.", {"7"}), 1);
  EXPECT_EQ(longbench("passage_count", "7 or 8", {"7"}), 0.5);
  EXPECT_EQ(longbench("passage_count", "seven", {"7"}), 0);
  EXPECT_EQ(longbench("passage_retrieval_en", "Paragraph 12", {"Paragraph 12"}), 1);
  EXPECT_EQ(longbench("passage_retrieval_en", "Paragraph 1", {"Paragraph 12"}), 0);
  EXPECT_EQ(longbench("passage_retrieval_en", "3", {"none"}), 0);
}

TEST(LongBench, CodeIsComparedByItsFirstLine) {
  EXPECT_EQ(longbench("lcc", "\n```python\n# a comment\ny = 2\nz = 3", {"y = 2"}), 1);
  // "abcd" and "abxd": three letters in common, 2 * 3 / 8.
  EXPECT_EQ(longbench("repobench-p", "abcd", {"abxd"}), 0.75);
  EXPECT_EQ(longbench("lcc", "# nothing", {"y"}), 0);
  EXPECT_EQ(longbench("lcc", "", {"y"}), 0);
}

TEST(LongBench, AClassMustBeTheOnlyOneNamed) {
  const Texts classes = {"City", "State", "Other location", "Other"};
  EXPECT_EQ(longbench("trec", "Type: City", {"City"}, classes), 1);
  EXPECT_EQ(longbench("trec", "City or State", {"City"}, classes), 0.5);
  EXPECT_EQ(longbench("trec", "Other location", {"Other location"}, classes), 1) << "Other is part of it";
  EXPECT_EQ(longbench("trec", "nowhere", {"City"}, classes), 0);
}

TEST(LongBench, SummariesAreScoredByRougeL) {
  EXPECT_NEAR(longbench("gov_report", "the mill is old", {"the mill is old"}), 1, 1e-7);
  // Common: the, mill, old; of 4 and 5 different words.
  const double p = 3.0 / 4, r = 3.0 / 5;
  EXPECT_NEAR(longbench("qmsum", "the mill was old", {"the mill is very old"}), 2 * p * r / (p + r), 1e-7);
  // Two sentences of the answer cover one of the reference: a b and c d of a b c d.
  EXPECT_NEAR(longbench("multi_news", "a b. c d", {"a b c d."}), 1, 1e-7);
  EXPECT_EQ(longbench("samsum", "...", {"a"}), 0);
}

}  // namespace
}  // namespace sheaf

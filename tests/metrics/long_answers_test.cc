// Answers and references as long, or as many, as a file can hold. What took time by their product would run
// for minutes here.
#include <gtest/gtest.h>
#include <random>

#include "core/base/error.h"
#include "core/metrics/metric.h"
#include "core/metrics/rouge_l.h"

namespace sheaf {
namespace {

using Words = std::vector<std::string>;

size_t plain_length(const Words& a, const Words& b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j)
      table[i][j] =
          a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1 : std::max(table[i - 1][j], table[i][j - 1]);
  return table[a.size()][b.size()];
}

TEST(LongAnswers, CommonSubsequencesAreThoseOfTheTable) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    const auto letters = 1 + random() % 6;
    const auto words = [&](size_t most) {
      Words list(random() % most);
      for (std::string& word : list) word = std::string(1, static_cast<char>('a' + random() % letters));
      return list;
    };
    const Words a = words(round % 4 == 0 ? 400 : 130), b = words(200);
    ASSERT_EQ(CommonSubsequence(a).length_with(b), plain_length(a, b)) << round;
  }
}

std::vector<double> scores_of(const std::string& metric, const MetricItem& item) {
  return score_items(find_metric(metric), std::span(&item, 1), {0, 0}).items;
}

std::string repeat(const std::string& text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(LongAnswers, RougeOfManyWordsIsExact) {
  MetricItem item;
  item.prediction = {repeat("a b c d ", 20'000)};
  item.references = {{repeat("d c b a ", 20'000)}, {repeat("a b c d ", 19'000)}};
  const auto scores = scores_of("rouge-l", item);
  EXPECT_DOUBLE_EQ(scores[1], 0.95);
  EXPECT_DOUBLE_EQ(scores[2], 1);
}

TEST(LongAnswers, ALongPredictionIsReadOnceForAllReferences) {
  MetricItem item;
  item.prediction = {repeat("some words of an answer ", 50'000) + "end"};
  for (int i = 0; i < 20'000; ++i) item.references.push_back({"words of " + std::to_string(i)});
  item.references.push_back({"answer end"});
  item.references.push_back({item.prediction->front()});  // an option, for accuracy
  for (const char* metric : {"squad", "squad1", "hotpotqa", "musique", "subspan-em", "accuracy"}) {
    const auto scores = scores_of(metric, item);
    EXPECT_GT(*std::max_element(scores.begin(), scores.end()), 0) << metric;
  }
  EXPECT_EQ(scores_of("subspan-em", item)[0], 1);
}

// An answer that repeats its beginning, and a reference that differs in its last word.
TEST(LongAnswers, SubspansOfOneRepeatedWordAreFound) {
  MetricItem item;
  item.prediction = {repeat("x ", 2'000'000)};
  item.references = {{repeat("x ", 1'000'000) + "y"}};
  EXPECT_EQ(scores_of("subspan-em", item)[0], 0);
  item.references = {{"y"}, {repeat("x ", 9'999)}};
  EXPECT_EQ(scores_of("subspan-em", item)[0], 1);
  item.references = {{"the"}};  // nothing is left of it, and nothing is in everything
  EXPECT_EQ(scores_of("subspan-em", item)[0], 1);
}

void expect_refusal(const std::string& metric, const MetricItem& item, const std::string& part) {
  try {
    scores_of(metric, item);
    ADD_FAILURE() << metric << " took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(LongAnswers, ComparisonsOfEachWithEachHaveALimit) {
  MetricItem item;
  item.id = "q7";
  item.prediction = {"x"};
  item.references.assign(101, {"x"});
  expect_refusal("quac", item, "question q7 has 101 references; the metric quac takes at most 100");
  item.references.pop_back();
  EXPECT_EQ(scores_of("quac", item)[0], 1);
  item.prediction = Words(501, "x");
  expect_refusal("drop", item, "an answer to question q7 has 501 spans; the metric drop takes at most 500");
  item.prediction->pop_back();
  item.references = {Words(500, "x")};
  EXPECT_EQ(scores_of("drop", item)[1], 1);
}

}  // namespace
}  // namespace sheaf

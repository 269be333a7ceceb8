// Intervals and paired tests.
#include <cmath>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/metrics/assignment.h"
#include "core/metrics/metrics.h"

namespace sheaf {
namespace {

/// Choices of which `right` of every ten are right, in turn.
std::vector<MetricItem> choices(size_t count, size_t right, size_t shift = 0) {
  std::vector<MetricItem> items(count);
  for (size_t i = 0; i < count; ++i) {
    items[i].id = std::to_string(i);
    items[i].references = {{"A"}};
    items[i].prediction = {{(i + shift) % 10 < right ? "A" : "B"}};
  }
  return items;
}

TEST(Intervals, AreThoseOfAShare) {
  const Scores scores = score_items(find_metric("accuracy"), choices(1000, 7), {.resamples = 4000});
  EXPECT_DOUBLE_EQ(scores.values[0], 0.7);
  // The normal approximation: 1.96 standard errors to each side.
  const double width = 1.96 * std::sqrt(0.7 * 0.3 / 1000);
  ASSERT_TRUE(scores.intervals[0]);
  EXPECT_NEAR(scores.intervals[0]->low, 0.7 - width, 0.002);
  EXPECT_NEAR(scores.intervals[0]->high, 0.7 + width, 0.002);
  EXPECT_FALSE(scores.intervals[1]) << "a count has none";
}

TEST(Intervals, DependOnTheSeedAlone) {
  const auto items = choices(200, 4);
  const Metric& metric = find_metric("accuracy");
  const auto low = [&](uint64_t seed) {
    return score_items(metric, items, {.seed = seed}).intervals[0]->low;
  };
  EXPECT_EQ(low(1), low(1));
  EXPECT_NE(low(1), low(2));
}

TEST(Intervals, DrawDocumentsWhole) {
  // Ten documents of a hundred attributes each, all right or all wrong: as uncertain as ten items are.
  std::vector<MetricItem> items = choices(1000, 10);
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].unit = std::to_string(i / 100 + 1);
    if (i / 100 % 2 == 0) items[i].prediction = {{"B"}};
  }
  const Scores scores = score_items(find_metric("accuracy"), items);
  EXPECT_EQ(scores.unit_count, 10);
  EXPECT_DOUBLE_EQ(scores.values[0], 0.5);
  EXPECT_LT(scores.intervals[0]->low, 0.25);
  EXPECT_GT(scores.intervals[0]->high, 0.75);
}

TEST(Intervals, InterpolatePercentiles) {
  std::vector<double> values(101);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(100 - i);
  const auto middle = middle_95(values);
  ASSERT_TRUE(middle);
  EXPECT_DOUBLE_EQ(middle->low, 2.5);
  EXPECT_DOUBLE_EQ(middle->high, 97.5);
  EXPECT_FALSE(middle_95({1.0, NAN, NAN})) << "hardly any draw had this value";
}

TEST(Comparisons, FindNoDifferenceBetweenEqualRuns) {
  const Scores a = score_items(find_metric("accuracy"), choices(300, 6));
  const Comparison same = compare_scores(a, a);
  ASSERT_TRUE(same.values[0]);
  EXPECT_EQ(same.values[0]->difference, 0);
  EXPECT_EQ(same.values[0]->interval.high, 0);
  EXPECT_EQ(same.values[0]->p_value, 1);
  EXPECT_EQ(same.mcnemar->p_value, 1);
}

TEST(Comparisons, ArePaired) {
  // The second run gets 13 more right, and 3 that the first had right wrong.
  const auto first = choices(500, 5);
  auto second = first;
  size_t gained = 0, lost = 0;
  for (MetricItem& item : second) {
    const bool right = item.prediction->front() == "A";
    if (!right && gained < 13) {
      item.prediction = {{"A"}};
      ++gained;
    } else if (right && lost < 3) {
      item.prediction = {{"B"}};
      ++lost;
    }
  }
  const Metric& metric = find_metric("accuracy");
  const Comparison test =
      compare_scores(score_items(metric, first), score_items(metric, second), {.resamples = 4000});
  ASSERT_TRUE(test.values[0] && test.mcnemar);
  EXPECT_NEAR(test.values[0]->difference, 0.02, 1e-12);
  EXPECT_GT(test.values[0]->interval.low, 0) << "an unpaired interval would hold 0";
  EXPECT_EQ(test.mcnemar->only_first, 3);
  EXPECT_EQ(test.mcnemar->only_second, 13);
  EXPECT_NEAR(test.mcnemar->p_value, 0.021270751953125, 1e-12);  // scipy.stats.binomtest(3, 16).pvalue
  EXPECT_NEAR(test.values[0]->p_value, test.mcnemar->p_value, 0.01) << "both test the same";
}

TEST(Comparisons, WorkForRatiosToo) {
  std::vector<MetricItem> first(400);
  for (size_t i = 0; i < first.size(); ++i) {
    first[i].id = std::to_string(i);
    first[i].unit = std::to_string(i / 4);
    first[i].references =
        i % 3 == 0 ? std::vector<std::vector<std::string>>{} : std::vector<std::vector<std::string>>{{"red"}};
    first[i].prediction = i % 2 == 0 ? std::vector<std::string>{"red"} : std::vector<std::string>{};
  }
  auto second = first;
  for (size_t i = 0; i < second.size(); i += 9) second[i].prediction = {{"blue"}};
  const Metric& metric = find_metric("attributes");
  const Comparison test = compare_scores(score_items(metric, first), score_items(metric, second));
  ASSERT_TRUE(test.values[2]) << "micro_f1";
  EXPECT_LT(test.values[2]->difference, 0);
  EXPECT_LT(test.values[2]->interval.high, 0);
  EXPECT_LT(test.values[2]->p_value, 0.05);
  EXPECT_FALSE(test.values[3]) << "nn is a count";
  EXPECT_FALSE(test.mcnemar) << "four values of a document are not four tosses";
}

TEST(Assignment, IsTheBestOfAll) {
  EXPECT_DOUBLE_EQ(best_assignment({0.9, 0.8, 0.8, 0.1}, 2, 2), 1.6) << "the greedy choice has 1.0";
  EXPECT_DOUBLE_EQ(best_assignment({0.5, 0.7, 0.2}, 1, 3), 0.7);
  EXPECT_DOUBLE_EQ(best_assignment({0.5, 0.7, 0.2}, 3, 1), 0.7);
  EXPECT_DOUBLE_EQ(best_assignment({}, 2, 0), 0);
}

TEST(Metrics, UnknownNamesAreRefused) {
  EXPECT_THROW(find_metric("sqad"), Error);
  EXPECT_EQ(find_metric("quac").name, "quac");
}

TEST(Metrics, WhatHasNoPredictionIsWrong) {
  std::vector<MetricItem> items(2);
  for (MetricItem& item : items) item.references = {{"x"}};
  items[0].prediction = {"x"};
  EXPECT_EQ(score_items(find_metric("squad"), items).values[0], 50);
}

}  // namespace
}  // namespace sheaf

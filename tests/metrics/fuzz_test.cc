// Broken files of predictions and judgements are refused, never crash; whatever was read can be scored.
#include "tests/fuzz.h"

#include <cmath>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "io/files/metric_items.h"

namespace sheaf {
namespace {

using nlohmann::json;

const std::vector<std::string_view> kWords = {"\"id\":",
                                              "\"answer\":",
                                              "\"answers\":[",
                                              "\"values\":{",
                                              "\"qid\":",
                                              "null",
                                              "1e999",
                                              "\\ud800",
                                              "[",
                                              "{",
                                              "}",
                                              ",",
                                              "\n",
                                              "\xff",
                                              "Σ",
                                              "İ"};

/// A reader may only give something or refuse.
template <class Read>
void expect_no_crash(const std::string& name, const std::string& text, Read&& read) {
  const TempFolder folder;
  int64_t good = 0;
  fuzz([&](std::mt19937_64& random) {
    const std::string path = folder.write(name, mutate(text, random, kWords));
    try {
      read(path);
      ++good;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::input) << error.what();
    }
  });
  EXPECT_GT(good, 0) << "every change was refused, so nothing was tried behind the reader";
}

std::vector<GoldAnswer> questions() {
  const json turn = {{"dialog", "d"}, {"yesno", "y"}, {"followup", "n"}};
  return {{"q1", {"the Old Mill", "a mill, 1994"}, true, turn}, {"q2", {}, false, turn}};
}

void score_questions(const std::string& path) {
  const Predictions predictions = read_predictions(path);
  for (const char* name : {"squad", "squad1", "rouge-l-stem", "accuracy", "quac", "drop", "exact-match",
                           "subspan-em", "hotpotqa", "musique", "answer-list", "longbench"}) {
    const Metric& metric = find_metric(name);
    const MetricItems joined = join_gold(metric, questions(), predictions);
    const Scores scores = score_items(metric, joined.items, {.resamples = 2});
    for (const double score : scores.items)
      EXPECT_TRUE(std::isnan(score) || (score >= 0 && score <= 1)) << name << ' ' << score;
  }
  score_items(find_metric("agreement"), join_runs(predictions, predictions).items);
}

TEST(PredictionsFuzz, LinesAreReadOrRefused) {
  expect_no_crash(
      "rows.jsonl",
      "{\"id\":\"q1\",\"answer\":\"The old mill's $1,994.50\"}\n"
      "{\"id\":\"p\",\"answers\":[{\"id\":\"q2\",\"answer\":null,\"option\":\"x\"},{\"answer\":[\"a\",7]}]}\n"
      "{\"qid\":[\"q3\"],\"best_span_str\":[\"b\"],\"yesno\":[\"y\"],\"followup\":[\"n\"]}\n"
      "{\"id\":\"q4\",\"predicted_answer\":\"mill\"}\n",
      score_questions);
}

TEST(PredictionsFuzz, ObjectsAreReadOrRefused) {
  expect_no_crash("official.json",
                  "{\"q1\": \"ΟΔΟΣ İ ２０２４ -1_000 inf\", \"q2\": \"\", \"q3\": [\"a\", 1.5, null]}",
                  score_questions);
}

TEST(PredictionsFuzz, AttributesAreReadOrRefused) {
  const std::vector<GoldAnswer> gold = {
      {1, {}, true, json{{"category", "Tea"}, {"gold", {{"Brand", {"Otter"}}, {"Form", {"n/a"}}}}}}};
  expect_no_crash("rows.jsonl",
                  "{\"id\":1,\"category\":\"Tea\",\"values\":{\"Brand\":\"Otter\",\"Form\":[\"a\",7.0]}}\n",
                  [&](const std::string& path) {
                    const Metric& metric = find_metric("attributes");
                    score_items(metric, join_gold(metric, gold, read_predictions(path)).items);
                  });
}

TEST(PredictionsFuzz, NestedValuesAreReadOrRefused) {
  const json entries =
      json::parse(R"([{"size": ["S"], "prices": [{"value": [1]}, {"value": [2]}]}, {"size": []}])");
  const std::vector<GoldAnswer> gold = {
      {1,
       {},
       true,
       json{{"category", "Tea"}, {"gold", {{"sizes", entries}, {"maker", {{"name", "Otter"}}}}}}}};
  expect_no_crash(
      "rows.jsonl",
      "{\"id\":1,\"category\":\"Tea\",\"values\":{\"sizes\":[{\"size\":\"S\",\"prices\":[{\"value\":1.0}]},"
      "{\"size\":null}],\"maker\":{\"name\":\"Otter\",\"since\":7}},\"confidence\":{\"sizes[0].size\":0.5}}"
      "\n",
      [&](const std::string& path) {
        const Metric& metric = find_metric("attributes");
        JoinOptions options;
        for (const bool all : {false, true}) {
          options.unmentioned_absent = all;
          score_items(metric, join_gold(metric, gold, read_predictions(path), options).items);
        }
      });
}

TEST(GoldFuzz, NestedGoldIsReadOrRefused) {
  const TempFolder folder;
  const std::string rows = folder.write(
      "rows.jsonl",
      "{\"id\":1,\"values\":{\"sizes\":[{\"size\":\"S\",\"price\":1}],\"maker\":{\"name\":\"Otter\"}}}\n");
  const Predictions predictions = read_predictions(rows);
  expect_no_crash(
      "gold.jsonl",
      "{\"id\":1,\"gold\":{\"sizes\":[{\"size\":\"S\",\"price\":[1,2]},{\"size\":null}],\"maker\":{\"name\":"
      "\"Otter\"}}}\n",
      [&](const std::string& path) {
        const Metric& metric = find_metric("attributes");
        score_items(metric, join_gold(metric, read_gold("sheaf", path), predictions).items);
      });
}

TEST(PredictionsFuzz, JudgementsAreReadOrRefused) {
  expect_no_crash(
      "judged.jsonl",
      "{\"id\":1,\"judgements\":{\"Brand\":\"correct\",\"Form\":\"missing\"}}\n"
      "{\"id\":2,\"reply\":\"so <result>{\\\"Brand\\\": \\\"correct null\\\"}</result>\"}\n",
      [](const std::string& path) { score_items(find_metric("llm-f1"), read_judged_items(path).items); });
}

}  // namespace
}  // namespace sheaf

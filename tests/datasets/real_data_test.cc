// The datasets themselves, where they lie beside the project.
#include <algorithm>
#include <gtest/gtest.h>

#include "io/base/file_layer.h"
#include "io/corpus/corpus.h"
#include "io/datasets/convert.h"
#include "io/datasets/gold.h"
#include "io/datasets/needle.h"
#include "io/datasets/readers.h"
#include "io/files/job_file.h"
#include "io/files/metric_items.h"
#include "tests/files.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

struct Counts {
  int64_t rows = 0, questions = 0, unanswerable = 0;
  bool operator==(const Counts&) const = default;
};

Counts convert_all(const std::string& format, const std::string& path) {
  const TempFolder folder;
  const std::string out = folder.path("corpus.parquet");
  const Converted done = convert_dataset(format, path, out, {}, [](const DatasetRow& row) {
    ADD_FAILURE() << place_text(row) << ": " << row.error;
  });
  const auto gold = read_gold("sheaf", out);
  EXPECT_EQ(gold.size(), static_cast<size_t>(done.questions > 0 ? done.questions : done.rows));
  return {done.rows, done.questions, done.unanswerable};
}

TEST(RealData, SquadHasItsKnownCounts) {
  NEED_SHARED("../shared/datasets/squad2/dev-v2.0.json");
  EXPECT_EQ(convert_all("squad", "../shared/datasets/squad2/dev-v2.0.json"), (Counts{1204, 11873, 5945}));
}

TEST(RealData, RaceHasItsKnownCounts) {
  NEED_SHARED("../shared/datasets/race/test");
  EXPECT_EQ(convert_all("race", "../shared/datasets/race/test"), (Counts{1407, 4934, 0}));
}

TEST(RealData, HotpotQaAndMusiqueHaveTheirKnownCounts) {
  NEED_SHARED("../shared/datasets/hotpotqa/hotpot-200.jsonl");
  EXPECT_EQ(convert_all("hotpotqa", "../shared/datasets/hotpotqa/hotpot-200.jsonl"), (Counts{200, 200, 0}));
  NEED_SHARED("../shared/datasets/musique/musique-200.jsonl");
  EXPECT_EQ(convert_all("musique", "../shared/datasets/musique/musique-200.jsonl"), (Counts{200, 200, 0}));
}

/// The first accepted answer to everything, as a run would have it.
Predictions gold_predictions(const std::vector<GoldAnswer>& gold) {
  Predictions predictions;
  for (const GoldAnswer& one : gold) {
    const std::string id = id_text(one.id);
    predictions.ids.push_back(id);
    predictions.documents = one.extra.is_object() && one.extra.contains("gold");
    nlohmann::json& row = predictions.by_id[id];
    if (!predictions.documents) {
      row["answer"] = one.references.empty() ? nlohmann::json() : nlohmann::json(one.references.front());
      continue;
    }
    for (const auto& [attribute, values] : one.extra["gold"].items())
      row[attribute] =
          values[0] == "n/a" ? nlohmann::json() : nlohmann::json(trimmed(values[0].get<std::string>()));
  }
  return predictions;
}

TEST(RealData, GoldAnswersScoreFull) {
  struct Case {
    std::string format, path, metric, value;
  };
  for (const Case& one :
       std::vector<Case>{{"squad", "squad2/dev-v2.0.json", "squad", "exact"},
                         {"race", "race/test", "accuracy", "accuracy"},
                         {"hotpotqa", "hotpotqa/hotpot-200.jsonl", "hotpotqa", "em"},
                         {"hotpotqa", "hotpotqa/hotpot-200.jsonl", "subspan-em", "subspan_em"},
                         {"musique", "musique/musique-200.jsonl", "musique", "answer_f1"},
                         {"oa-mine", "oa-mine/test.jsonl", "attributes", "micro_f1"},
                         {"ae-110k", "ae-110k/test.jsonl", "attributes", "micro_f1"}}) {
    const std::string path = "../shared/datasets/" + one.path;
    NEED_SHARED(path);
    EXPECT_EQ(guess_dataset_format(path), one.format == "ae-110k" ? "oa-mine" : one.format);
    const auto gold = read_gold(one.format, path);
    const Metric& metric = find_metric(one.metric);
    const MetricItems joined = join_gold(metric, gold, gold_predictions(gold));
    EXPECT_TRUE(joined.missing.empty());
    const Scores scores = score_items(metric, joined.items, {.resamples = 0});
    const auto value = std::ranges::find(metric.values, one.value, &Metric::ValueName::name);
    ASSERT_NE(value, metric.values.end()) << one.value;
    EXPECT_EQ(scores.values[static_cast<size_t>(value - metric.values.begin())], metric.best)
        << one.path << ' ' << one.value;
  }
}

TEST(RealData, NeedlesArePlacedInWarAndPeace) {
  NEED_SHARED("../shared/datasets/books/war_and_peace.txt");
  NeedleOptions options;
  options.count = 1;
  options.questions = 256;
  options.length = 8800;
  options.dogs = true;
  const std::string book = read_whole("../shared/datasets/books/war_and_peace.txt").value();
  const auto rows = make_needles(book, "war_and_peace.txt", options);
  ASSERT_EQ(rows.size(), 1u);
  const auto context = rows[0]["context"].get<std::string>();
  EXPECT_EQ(rows[0]["questions"].size(), 256u);
  size_t facts = 0;
  for (size_t at = 0; (at = context.find("has fur that is", at)) != std::string::npos; ++at) ++facts;
  EXPECT_EQ(facts, 261u) << "Hydragen, appendix D.3: 256 questions and five examples";
}

TEST(RealData, ShippedSchemasHoldEveryAttributeOfTheProducts) {
  const std::vector<std::pair<std::string, int64_t>> files = {
      {"oa-mine/test", 491}, {"oa-mine/train", 1452}, {"ae-110k/test", 524}, {"ae-110k/train", 1568}};
  for (const auto& [name, rows] : files) {
    const std::string path = "../shared/datasets/" + name + ".jsonl";
    NEED_SHARED(path);
    const std::string format = name.substr(0, name.find('/'));
    EXPECT_EQ(convert_all(format, path), (Counts{rows, 0, 0}));
    const Schema schema = read_schema("configs/schemas/" + format + ".yaml");
    for (const GoldAnswer& answer : read_gold(format, path)) {
      const Category* category = schema.find(answer.extra["category"].get<std::string>());
      ASSERT_NE(category, nullptr) << answer.extra["category"];
      for (const auto& [attribute, values] : answer.extra["gold"].items())
        EXPECT_TRUE(std::any_of(category->attributes.begin(), category->attributes.end(),
                                [&key = attribute](const Attribute& a) { return a.name == key; }))
            << category->name << ": " << attribute;
    }
  }
}

}  // namespace
}  // namespace sheaf

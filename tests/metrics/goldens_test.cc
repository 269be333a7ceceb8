// Our scores beside those of the official scripts and reference packages (tools/make_metric_goldens.py).
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "core/metrics/metric.h"
#include "core/metrics/python_text.h"
#include "core/metrics/rouge_l.h"
#include "core/text/utf8.h"
#include "tests/files.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr double kSame = 1e-9;

json read_golden(const std::string& name) {
  return json::parse(read_text(SHEAF_SOURCE_DIR "/tests/metrics/goldens/" + name + ".json"));
}

std::vector<MetricItem> read_items(const json& golden) {
  std::vector<MetricItem> items;
  for (const json& entry : golden.at("items")) {
    MetricItem item;
    item.id = entry.at("id");
    item.unit = entry.value("unit", "");
    item.category = entry.value("category", "");
    item.attribute = entry.value("attribute", "");
    if (entry.contains("prediction")) item.prediction = entry["prediction"].get<std::vector<std::string>>();
    item.references = entry.at("references").get<std::vector<std::vector<std::string>>>();
    item.kinds = entry.value("kinds", std::vector<std::string>());
    if (entry.contains("yesno")) item.yesno = entry["yesno"].get<bool>();
    if (entry.contains("followup")) item.followup = entry["followup"].get<bool>();
    items.push_back(std::move(item));
  }
  return items;
}

/// The values and the scores of every item.
void expect_equal(const json& golden, std::vector<MetricItem> items) {
  const Metric& metric = find_metric(golden.at("metric").get<std::string>());
  // The script of SQuAD 2.0 passes over what has no prediction.
  if (metric.name == "squad") std::erase_if(items, [](const MetricItem& item) { return !item.prediction; });
  const Scores scores = score_items(metric, items, {.resamples = 0});
  size_t compared = 0;
  for (size_t v = 0; v < metric.values.size(); ++v) {
    const auto wanted = golden.at("values").find(metric.values[v].name);
    if (wanted == golden.at("values").end()) continue;
    ++compared;
    EXPECT_NEAR(scores.values[v], wanted->get<double>(), kSame)
        << metric.name << ' ' << metric.values[v].name;
  }
  EXPECT_EQ(compared, golden.at("values").size());
  if (!golden.contains("scores")) return;
  for (size_t i = 0; i < items.size(); ++i) {
    const json& wanted = golden["scores"].at(items[i].id);
    for (size_t s = 0; s < wanted.size(); ++s) {
      const double score = scores.items[i * metric.scores.size() + s];
      if (wanted[s].is_null())
        EXPECT_TRUE(std::isnan(score)) << metric.name << ": " << items[i].id << " does not count";
      else
        EXPECT_NEAR(score, wanted[s].get<double>(), kSame)
            << metric.name << ' ' << metric.scores[s].name << " of " << items[i].id << ": "
            << golden["items"][i].dump();
    }
  }
}

void expect_golden(const std::string& name) {
  const json golden = read_golden(name);
  const std::vector<MetricItem> items = read_items(golden);
  ASSERT_GT(items.size(), 100U);
  expect_equal(golden, items);
}

TEST(MetricGoldens, Squad2EqualsTheReference) {
  expect_golden("squad");
}
TEST(MetricGoldens, Squad1EqualsTheReference) {
  expect_golden("squad1");
}
TEST(MetricGoldens, QuacEqualsTheReference) {
  expect_golden("quac");
}
TEST(MetricGoldens, HotpotQaEqualsTheReference) {
  expect_golden("hotpotqa");
}
TEST(MetricGoldens, MusiqueEqualsTheReference) {
  expect_golden("musique");
}
TEST(MetricGoldens, SubspanEmEqualsTheReference) {
  expect_golden("subspan-em");
}

TEST(MetricGoldens, DropEqualsTheReference) {
  expect_golden("drop");
  const json golden = read_golden("drop");
  const Metric& metric = find_metric("drop");
  const std::vector<Group> groups = break_down(metric, read_items(golden));
  ASSERT_EQ(groups.size(), golden["groups"].size());
  for (const Group& group : groups) {
    const json& wanted = golden["groups"].at(group.category);
    constexpr double kPrinted = 0.0005 / 100;  // the script prints three decimals of a percentage
    EXPECT_NEAR(group.values[0], wanted["global_em"].get<double>() / 100, kPrinted) << group.category;
    EXPECT_NEAR(group.values[1], wanted["global_f1"].get<double>() / 100, kPrinted) << group.category;
    EXPECT_EQ(group.values[2], wanted["total"].get<double>()) << group.category;
  }
}

TEST(MetricGoldens, RougeLEqualsTheReference) {
  const json plain = read_golden("rouge-l"), stemmed = read_golden("rouge-l-stem");
  const std::vector<MetricItem> items = read_items(plain);
  ASSERT_GT(items.size(), 100U);
  expect_equal(plain, items);
  expect_equal(stemmed, items);
  EXPECT_NE(plain["values"]["rougeL"], stemmed["values"]["rougeL"]);
}

TEST(MetricGoldens, AttributesEqualTheReference) {
  const json golden = read_golden("attributes");
  const std::vector<MetricItem> items = read_items(golden);
  expect_equal(golden, items);

  const std::vector<Group> groups = break_down(find_metric("attributes"), items);
  const std::vector<double> macro = macro_scores(groups);
  EXPECT_EQ(macro[0], golden["macro"]["macro_precision"].get<double>());
  EXPECT_EQ(macro[1], golden["macro"]["macro_recall"].get<double>());
  EXPECT_EQ(macro[2], golden["macro"]["macro_f1"].get<double>());
  size_t compared = 0;
  for (const Group& group : groups) {
    const auto wanted = golden["groups"].find(group.attribute + "_" + group.category);
    if (wanted == golden["groups"].end()) continue;
    ++compared;
    EXPECT_EQ(group.values[0], (*wanted)["precision"].get<double>()) << group.attribute;
    EXPECT_EQ(group.values[1], (*wanted)["recall"].get<double>()) << group.attribute;
    EXPECT_EQ(group.values[2], (*wanted)["f1"].get<double>()) << group.attribute;
  }
  EXPECT_EQ(compared, golden["groups"].size());
}

TEST(MetricGoldens, StemsEqualTheReference) {
  const json golden = read_golden("stems");
  ASSERT_GT(golden.size(), 1000U);
  for (const json& pair : golden)
    EXPECT_EQ(porter_stem(pair[0].get<std::string>()), pair[1].get<std::string>()) << pair[0];
}

std::vector<std::string> find_words(const std::string& text) {
  std::vector<std::string> words;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const Decoded decoded = decode_valid(&text[at]);
    const bool word = python::is_word(decoded.point);
    if (word && !inside) words.emplace_back();
    if (word) words.back() += text.substr(at, decoded.bytes);
    inside = word;
    at += decoded.bytes;
  }
  return words;
}

TEST(MetricGoldens, TextFunctionsEqualPythons) {
  const json golden = read_golden("text");
  ASSERT_FALSE(golden.at("texts").empty());
  for (const json& entry : golden["texts"]) {
    const std::string text = entry["text"];
    EXPECT_EQ(python::lower(text), entry["lower"].get<std::string>());
    const auto words = python::split(text);
    EXPECT_EQ(std::vector<std::string>(words.begin(), words.end()),
              entry["split"].get<std::vector<std::string>>());
    EXPECT_EQ(find_words(text), entry["words"].get<std::vector<std::string>>()) << text;
  }
}

TEST(MetricGoldens, NumberFunctionsEqualPythons) {
  const json golden = read_golden("text");
  ASSERT_FALSE(golden.at("numbers").empty());
  for (const json& pair : golden["numbers"]) {
    const auto number = python::parse_number(pair[0].get<std::string>());
    EXPECT_EQ(number ? json(python::text_of(*number)) : json(nullptr), pair[1]) << pair[0];
  }
  ASSERT_FALSE(golden.at("rounded").empty());
  for (const json& pair : golden["rounded"])
    EXPECT_EQ(python::round_to_cents(pair[0].get<double>()), pair[1].get<double>()) << pair[0];
}

}  // namespace
}  // namespace sheaf

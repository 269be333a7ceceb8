// What confidence is worth: its scale, its error, what can be accepted without review, and other null biases.
#include "core/metrics/confidence.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "io/files/confidence_file.h"
#include "tests/errors.h"
#include "tests/fuzz.h"
#include "tests/metrics/score_command.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::ScoreCommand;

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// Predictions that are right as often as the scale says.
std::vector<Judged> judged_by(const ConfidenceScale& scale, size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> logits(1, 3);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Judged> judged;
  for (size_t i = 0; i < count; ++i) {
    const double logit = logits(random);
    judged.push_back({sigmoid(logit), uniform(random) < sigmoid(logit / scale.temperature + scale.offset)});
  }
  return judged;
}

TEST(Confidence, FindsAKnownScale) {
  for (const ConfidenceScale known : {ConfidenceScale{1, 0}, {2.5, 0}, {0.5, -1}, {4, 1.5}, {1, -3}}) {
    const auto judged = judged_by(known, 40000, 3);
    const ConfidenceScale found = fit_scale(judged);
    EXPECT_NEAR(found.temperature, known.temperature, 0.05 * known.temperature);
    EXPECT_NEAR(found.offset, known.offset, 0.06);
    EXPECT_EQ(found, fit_scale(judged));
    std::vector<Judged> scaled = judged;
    for (Judged& one : scaled) one.confidence = found.apply(one.confidence);
    EXPECT_LT(calibration_error(scaled), 0.012);
    EXPECT_LE(calibration_error(scaled), calibration_error(judged) + 0.003);
  }
}

TEST(Confidence, AFitIsAlwaysFinite) {
  const auto fits = [](const std::vector<Judged>& judged) {
    const ConfidenceScale scale = fit_scale(judged);
    EXPECT_GE(scale.temperature, 0.01);
    EXPECT_LE(scale.temperature, 100);
    EXPECT_TRUE(std::isfinite(scale.offset));
    return scale;
  };
  const double certain = fits({{0.99, true}, {0.9, true}, {0.95, true}}).apply(0.95);
  EXPECT_GT(certain, 0.5);
  EXPECT_LT(certain, 0.9) << "three right ones do not make certainty";
  EXPECT_LT(fits({{0.99, false}, {0.9, false}, {0.95, false}}).apply(0.95), 0.5);
  fits({{1, true}, {0, false}});
  fits({{1, false}, {0, true}});  // against all reason
  fits({{0.9, true}, {0.9, false}});
  fits({{0.5, true}});
}

TEST(Confidence, AScaleKeepsTheOrderAndDoubtsCertainty) {
  const ConfidenceScale scale{2, -0.5};
  EXPECT_NEAR(scale.apply(0), 0, 1e-3);
  EXPECT_NEAR(scale.apply(1), 1, 1e-3);
  const std::vector<Judged> certain{{1, true}, {1, false}, {1, true}, {1, false}};
  EXPECT_LT(fit_scale(certain).apply(1), 0.9);
  EXPECT_DOUBLE_EQ(scale.apply(0.5), sigmoid(-0.5));
  EXPECT_DOUBLE_EQ((ConfidenceScale{}.apply(0.3)), 0.3);
  EXPECT_LT(scale.apply(0.3), scale.apply(0.31));
}

TEST(Confidence, CalibrationErrorIsComputedOverBins) {
  EXPECT_DOUBLE_EQ(calibration_error({}), 0);
  // Two in the last bin [14/15, 1], one in the bin of 0.5.
  EXPECT_DOUBLE_EQ(calibration_error(std::vector<Judged>{{0.98, true}, {0.96, false}, {0.5, true}}),
                   (std::abs(0.98 + 0.96 - 1) + 0.5) / 3);
  // In one bin, errors of both signs cancel; in two they do not.
  EXPECT_NEAR(calibration_error(std::vector<Judged>{{0.5, true}, {0.5, false}}), 0, 1e-12);
  EXPECT_NEAR(calibration_error(std::vector<Judged>{{0.4, true}, {0.6, false}}), 0.6, 1e-12);
  EXPECT_DOUBLE_EQ(calibration_error(std::vector<Judged>{{1, true}, {0, false}}), 0);
}

TEST(Confidence, TakesAsMuchAsThePrecisionAllows) {
  const std::vector<Judged> judged{{0.9, true}, {0.2, false}, {0.8, false}, {0.7, true},  {0.6, true},
                                   {0.6, true}, {0.5, false}, {0.4, true},  {0.3, false}, {0.1, false}};
  // 1/1, 1/2, 2/3, 4/5 (two at once), 4/6, 5/7, …
  const auto most = most_taken(judged, 0.8);
  ASSERT_TRUE(most);
  EXPECT_DOUBLE_EQ(most->coverage, 0.5);
  EXPECT_DOUBLE_EQ(most->precision, 0.8);
  EXPECT_DOUBLE_EQ(most->confidence, 0.6);
  EXPECT_DOUBLE_EQ(most_taken(judged, 0.75)->coverage, 0.5) << "three of four do not stop between equals";
  EXPECT_DOUBLE_EQ(most_taken(judged, 1)->coverage, 0.1);
  EXPECT_DOUBLE_EQ(most_taken(judged, 0.5)->coverage, 1);
  EXPECT_FALSE(most_taken(std::vector<Judged>{{0.9, false}, {0.8, true}}, 0.9));
  const ConfidenceSummary summary = summarize_confidence(judged);
  EXPECT_EQ(summary.items, 10);
  EXPECT_EQ(summary.right, 5);
  EXPECT_EQ(summary.curve.size(), 9u) << "thresholds, each once";
  EXPECT_DOUBLE_EQ(summary.curve.back().coverage, 1);
}

MetricItem value(const char* given, const char* gold, double margin) {
  MetricItem item;
  item.prediction.emplace();
  if (*given) item.prediction->push_back(given);
  if (*gold) item.references.push_back({gold});
  item.null_margin = margin;
  return item;
}

TEST(NullBias, ASweepTurnsTheLeastSureValuesIntoNulls) {
  const std::vector<MetricItem> items{value("a", "a", 3), value("b", "", 0.6), value("c", "x", 1.2),
                                      value("", "y", -2), value("", "", -1)};
  const std::vector<BiasScores> sweep = sweep_null_bias(find_metric("attributes"), items, 0);
  ASSERT_EQ(sweep.size(), 14u) << "0 to 3.25, where all are null";
  EXPECT_DOUBLE_EQ(sweep[0].values[0], 33.33);
  EXPECT_DOUBLE_EQ(sweep[2].values[0], 33.33) << "0.5 is below every margin";
  EXPECT_DOUBLE_EQ(sweep[3].values[0], 50) << "0.75: the invented b is null";
  EXPECT_DOUBLE_EQ(sweep[5].values[0], 100);
  EXPECT_DOUBLE_EQ(sweep[5].values[1], 33.33);
  EXPECT_DOUBLE_EQ(sweep.back().values[1], 0);
  EXPECT_DOUBLE_EQ(best_bias(sweep).bias, 1.25) << "the smallest of those with the best F1";
  EXPECT_EQ(sweep_null_bias(find_metric("attributes"), items, 10).size(), 1u);
  EXPECT_EQ(values_without_margin(items), 0);
  MetricItem fixed = items[0];
  fixed.null_margin.reset();
  EXPECT_EQ(values_without_margin(std::vector{fixed, items[3]}), 1);
  EXPECT_DOUBLE_EQ(
      sweep_null_bias(find_metric("attributes"), std::vector{fixed, items[1]}, 0).back().values[1], 100);
}

constexpr const char* kGoldValues =
    R"({"id": 1, "category": "Tea", "document": "x", "gold": {"Brand": "Oak", "Size": null}}
{"id": 2, "category": "Tea", "document": "x", "gold": {"Brand": "Elm", "Size": "2"}}
)";
constexpr const char* kRows =
    R"({"id": 1, "category": "Tea", "values": {"Brand": "Oak", "Size": null}, "confidence": {"Brand": 0.9, "Size": 0.6}}
{"id": 2, "category": "Tea", "values": {"Brand": "Ash", "Size": "2"}, "confidence": {"Brand": 0.5, "Size": 0.8}}
)";

TEST_F(ScoreCommand, ReportsCalibrationOfConfidence) {
  const std::string command = "--metric attributes --gold " + write("values.jsonl", kGoldValues) +
                              " --pred " + write("rows.jsonl", kRows);
  const json scored = score(command)["confidence"];
  EXPECT_EQ(scored["values"]["items"], 3);
  EXPECT_EQ(scored["values"]["right"], 2);
  EXPECT_NEAR(scored["values"]["ece"], (0.1 + 0.2 + 0.5) / 3, 1e-9);
  EXPECT_NEAR(scored["values"]["taken_at"]["0.95"]["coverage"], 2.0 / 3, 1e-9);
  EXPECT_DOUBLE_EQ(scored["values"]["taken_at"]["0.95"]["confidence"], 0.8);
  EXPECT_EQ(scored["nulls"]["items"], 1);
  EXPECT_EQ(scored["attributes"]["Tea"]["Brand"]["right"], 1);
  EXPECT_NEAR(scored["attributes"]["Tea"]["Brand"]["ece"], (0.1 + 0.5) / 2, 1e-9);
  // Gold that names no absent attribute says only of wrong nulls.
  std::string named = kGoldValues;
  named.replace(named.find(", \"Size\": null"), 14, "");
  write("values.jsonl", named);
  EXPECT_FALSE(score(command)["confidence"].contains("nulls"));
  write("values.jsonl", kGoldValues);
  const std::string text = run(command).out;
  EXPECT_NE(
      text.find("at 95 % precision 66.7 % of values can be accepted without review (confidence 0.8 or more)"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("expected calibration error 0.2667"), std::string::npos) << text;
  const std::string answers =
      write("answers.jsonl", "{\"id\": \"q1\", \"answer\": \"a mill\", \"confidence\": 0.7}\n");
  EXPECT_NEAR(score(squad() + answers + " --skip-missing")["confidence"]["values"]["ece"], 0.3, 1e-9);
}

TEST_F(ScoreCommand, RefusesAConfidenceThatIsNoProbability) {
  const std::string gold = write("values.jsonl", kGoldValues);
  for (const char* wrong : {"95", "-0.1", "1.01"}) {
    const std::string rows = write("rows.jsonl", std::string(R"({"id": 1, "values": {"Brand": "Oak"}, )") +
                                                     R"("confidence": {"Brand": )" + wrong + "}}\n");
    const auto ran = run("--metric attributes --gold " + gold + " --pred " + rows);
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_NE(ran.err.find("\"confidence\" must be a number from 0 to 1, not "), std::string::npos)
        << ran.err;
  }
  const auto ran =
      run(squad() + write("answers.jsonl", "{\"id\": \"q1\", \"answer\": \"x\", \"confidence\": 7}\n"));
  EXPECT_EQ(ran.exit_code, 2);
}

TEST_F(ScoreCommand, MalformedConfidenceIsRefused) {
  const std::string gold = "--metric attributes --gold " + write("values.jsonl", kGoldValues) + " --pred ";
  expect_refusal(
      gold + write("rows.jsonl", "{\"id\": 1, \"values\": {\"Brand\": \"Oak\"}, \"confidence\": 0.5}\n"),
      "rows.jsonl:1: \"confidence\" must be an object {attribute: number}");
  expect_refusal(
      gold + write("rows.jsonl", "{\"id\": 1, \"values\": {}, \"null_margins\": {\"Brand\": \"x\"}}\n"),
      "rows.jsonl:1: \"null_margins\" of \"Brand\" is not a number");
}

ConfidenceScales made_up_scales() {
  return {{{1.5, -0.25}, 300, 240}, {{1, 0}, 0, 0}, "attributes"};
}

/// The chance of at least `right` of `taken`, by adding up every outcome of coin after coin.
double tail_by_coins(int taken, int right, double precision) {
  std::vector<double> chances{1};
  for (int coin = 0; coin < taken; ++coin) {
    chances.push_back(0);
    for (size_t k = chances.size(); k-- > 1;)
      chances[k] = chances[k] * (1 - precision) + chances[k - 1] * precision;
    chances[0] *= 1 - precision;
  }
  return std::accumulate(chances.begin() + right, chances.end(), 0.0);
}

TEST(PromisedPrecision, IsTheLowestThresholdThatTheSampleAllows) {
  // The surer half of 400 is right but for two, of the others every second is.
  std::vector<Judged> judged;
  for (int i = 0; i < 400; ++i)
    judged.push_back({1 - i / 1000.0, i < 200 ? i != 60 && i != 150 : i % 2 == 0});
  const auto found = promise_precision(judged, 0.95, 0.05);
  ASSERT_TRUE(found);
  int64_t right = 0, lowest = 0;
  for (int64_t taken = 1; taken <= 400; ++taken) {
    right += judged[static_cast<size_t>(taken - 1)].right;
    if (taken % 20 == 0 && tail_by_coins(static_cast<int>(taken), static_cast<int>(right), 0.95) <= 0.05 / 20)
      lowest = taken;
  }
  EXPECT_EQ(found->taken, lowest);
  EXPECT_EQ(found->at_least, judged[static_cast<size_t>(lowest - 1)].confidence);
  EXPECT_NEAR(tail_by_coins(static_cast<int>(found->taken), static_cast<int>(found->right), found->bound),
              0.05 / 20, 1e-6);
  EXPECT_GE(found->bound, 0.95);
}

TEST(PromisedPrecision, ASmallSamplePromisesNothing) {
  EXPECT_EQ(fewest_to_promise(0.95, 0.05), 117);
  std::vector<Judged> judged(116, {0.9, true});
  EXPECT_FALSE(promise_precision(judged, 0.95, 0.05));
  judged.push_back({0.9, true});
  EXPECT_TRUE(promise_precision(judged, 0.95, 0.05));
  EXPECT_FALSE(promise_precision({}, 0.95, 0.05));
}

TEST(PromisedPrecision, HoldsInNearlyAllSamples) {
  // Confidence says nothing here, and 0.94 are right: every threshold breaks the promise.
  std::mt19937 random(1);
  std::bernoulli_distribution is_right(0.94);
  std::uniform_real_distribution<double> confidence(0, 1);
  int broken = 0;
  constexpr int kSamples = 1000;
  for (int sample = 0; sample < kSamples; ++sample) {
    std::vector<Judged> judged;
    for (int i = 0; i < 300; ++i) judged.push_back({confidence(random), is_right(random)});
    broken += promise_precision(judged, 0.95, 0.05).has_value();
  }
  EXPECT_LE(broken, kSamples / 20);
  EXPECT_GT(broken, 0) << "a bound that is never reached is too careful";
}

TEST(ConfidenceFile, IsReadBack) {
  const TempFolder folder;
  const std::string text = confidence_file_text(made_up_scales());
  const ConfidenceScales read = read_confidence_file(folder.write("c.json", text));
  EXPECT_EQ(read.values.scale, made_up_scales().values.scale);
  EXPECT_EQ(read.values.right, 240);
  EXPECT_EQ(confidence_file_text(read), text);
}

TEST(ConfidenceFile, ErrorsNameTheKey) {
  const TempFolder folder;
  const std::string good = confidence_file_text(made_up_scales());
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const std::string path = folder.write("c.json", text);
    return error_of([&] { read_confidence_file(path); }).substr(path.size());
  };
  EXPECT_EQ(error("1.5", "0"), ": values: \"temperature\" must be from 0.01 to 100, not 0");
  EXPECT_EQ(error("-0.25", "1e9"), ": values: \"offset\" must be from -1000 to 1000, not 1000000000");
  EXPECT_EQ(error("240", "301"), ": values: 301 of 300 items cannot be right");
  EXPECT_EQ(error("\"nulls\"", "\"nul\""),
            ": unknown key \"nul\"; write the file again with `sheaf calibrate`");
  EXPECT_EQ(error("sheaf confidence 1", "x"),
            ": the format is \"x\", not \"sheaf confidence 1\"; write the file again with `sheaf calibrate`");
}

TEST(ConfidenceFile, FuzzedFilesAreReadOrRefused) {
  const TempFolder folder;
  fuzz_target("confidence", {confidence_file_text(made_up_scales())}, kJsonWords,
              [&](const std::string& text) {
                const ConfidenceScales scales = read_confidence_file(folder.write("c.json", text));
                for (const double confidence : {0.0, 0.2, 1.0}) {
                  const double scaled = scales.values.scale.apply(confidence);
                  EXPECT_TRUE(scaled >= 0 && scaled <= 1);
                }
              });
}

}  // namespace
}  // namespace sheaf

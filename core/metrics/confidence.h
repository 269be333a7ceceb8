#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/metrics/metric.h"

namespace sheaf {

/// A prediction that was judged.
struct Judged {
  double confidence = 0;  ///< in [0, 1]
  bool right = false;
};

/// How confidence becomes the share that is right: its logit is divided by the temperature, then the offset
/// is added.
struct ConfidenceScale {
  double temperature = 1, offset = 0;

  double apply(double confidence) const;
  bool operator==(const ConfidenceScale&) const = default;
};

/// The scale under which the judgements are most likely. Temperatures are within 0.1 and 20. Each side
/// counts one judgement more than there are (Platt), so that a few that are all right do not make certainty.
ConfidenceScale fit_scale(std::span<const Judged> judged);

/// The mean over all predictions of how far a bin's confidence is from its share of right ones. 15 bins of
/// equal width; docs/confidence.md defines it.
double calibration_error(std::span<const Judged> judged);

/// What is taken when every prediction of at least some confidence is.
struct Taken {
  double confidence = 1;  ///< the least that is taken
  double coverage = 0;    ///< share that is taken
  double precision = 1;   ///< share of what is taken that is right
};

/// The most that can be taken at a precision; nothing where no prediction can.
std::optional<Taken> most_taken(std::span<const Judged> judged, double precision);

/// What confidence is worth, of values or of nulls.
struct ConfidenceSummary {
  int64_t items = 0, right = 0;
  double mean = 0;                                             ///< confidence
  double error = 0;                                            ///< calibration_error()
  std::vector<std::pair<double, std::optional<Taken>>> goals;  ///< by precision: 0.9, 0.95, 0.99
  std::vector<Taken> curve;  ///< at each twentieth of coverage that there is
};
ConfidenceSummary summarize_confidence(std::span<const Judged> judged);

/// A confidence from which on predictions can be taken.
struct PromisedThreshold {
  double at_least = 0;
  int64_t taken = 0, right = 0;  ///< of the sample
  double bound = 0;              ///< on the precision of all predictions like those of the sample
};

/// The lowest threshold, of those that take a twentieth, two twentieths, … of the sample, from which on at
/// least `precision` of all predictions like these are right, with a probability of 1 − `risk` over the
/// sample. Nothing where the sample cannot promise it. docs/confidence.md says how it is tested.
std::optional<PromisedThreshold> promise_precision(std::span<const Judged> judged, double precision,
                                                   double risk);
/// The fewest predictions, all of them right, that promise it.
int64_t fewest_to_promise(double precision, double risk);

/// Predictions that have a confidence: those that say something, and those that say nothing.
struct JudgedItems {
  std::vector<Judged> values, nulls;
  /// Values by category and name.
  std::map<std::pair<std::string, std::string>, std::vector<Judged>> attributes;
};
/// `scores`: of the same items, by a metric that judges each right or wrong; empty where it does not. Gold
/// answers that never say that nothing is right judge no nulls: they name only those that are wrong.
JudgedItems judged_items(std::span<const MetricItem> items, const Scores& scores);

/// Summaries of values and of nulls; by category and attribute how many values, how many of them right, and
/// their calibration error. Empty where no prediction has a confidence.
nlohmann::ordered_json confidence_json(const JudgedItems& judged);
/// Lines for people.
std::string confidence_text(const JudgedItems& judged);

/// The scores that a run would have with another method.null_bias.
struct BiasScores {
  double bias = 0;
  std::vector<double> values = {};  ///< of the metric
  double score = 0;                 ///< the one to choose by
  double nulls = 0;                 ///< share of the predictions that are null
};

/// Values that do not know their margin stay in a sweep.
int64_t values_without_margin(std::span<const MetricItem> items);

/// From the bias `ran_with` upward in quarters, until all values that know their margin are null. A smaller
/// bias makes values of nulls, which nobody has decoded: it needs a run.
std::vector<BiasScores> sweep_null_bias(const Metric& metric, std::span<const MetricItem> items,
                                        double ran_with);

/// The value of a metric by which a bias is chosen: F1 where there is one, else the first.
size_t bias_value(const Metric& metric);

/// The one with the highest score, the smallest bias on a tie.
const BiasScores& best_bias(std::span<const BiasScores> sweep);

}  // namespace sheaf

#include "core/metrics/confidence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "core/text/format.h"

namespace sheaf {
namespace {

constexpr double kSurest = 15;  // a logit: nothing that was judged tells more certainty apart
constexpr double kGoals[] = {0.90, 0.95, 0.99};
constexpr size_t kBins = 15;
constexpr int kCurvePoints = 20;
constexpr int kBiasSteps = 40;
constexpr double kBiasStep = 0.25, kWidestBias = kBiasSteps * kBiasStep;

double logit(double confidence) {
  if (confidence <= 0) return -kSurest;
  if (confidence >= 1) return kSurest;
  return std::clamp(std::log(confidence) - std::log1p(-confidence), -kSurest, kSurest);
}

double sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

/// Newton's method on the log-likelihood of right = sigmoid(slope * logit + offset).
class ScaleFit {
 public:
  explicit ScaleFit(std::span<const Judged> judged) : judged_(judged) {
    const auto right = static_cast<double>(std::ranges::count(judged, true, &Judged::right));
    const double wrong = static_cast<double>(judged.size()) - right;
    right_ = (right + 1) / (right + 2);
    wrong_ = 1 / (wrong + 2);
  }

  ConfidenceScale fit() {
    climb(true);
    constexpr double kFlattest = 0.05, kSteepest = 10;
    if (slope_ < kFlattest || slope_ > kSteepest) {
      slope_ = std::clamp(slope_, kFlattest, kSteepest);
      climb(false);
    }
    return {1 / slope_, offset_};
  }

 private:
  double target(const Judged& one) const { return one.right ? right_ : wrong_; }

  /// Minus the log-likelihood.
  double loss(double slope, double offset) const {
    double sum = 0;
    for (const Judged& one : judged_) {
      const double x = slope * logit(one.confidence) + offset, t = target(one);
      sum += (x >= 0 ? (1 - t) * x : -t * x) + std::log1p(std::exp(-std::abs(x)));
    }
    return sum;
  }

  void climb(bool both) {
    constexpr int kMostSteps = 100, kMostHalvings = 33;
    constexpr double kRidge = 1e-9, kClose = 1e-10;
    double held = loss(slope_, offset_);
    for (int step = 0; step < kMostSteps; ++step) {
      double g_slope = 0, g_offset = 0, h_slope = kRidge, h_offset = kRidge, h_both = 0;
      for (const Judged& one : judged_) {
        const double z = logit(one.confidence), p = sigmoid(slope_ * z + offset_);
        const double miss = p - target(one), weight = p * (1 - p);
        g_slope += miss * z;
        g_offset += miss;
        h_slope += weight * z * z;
        h_both += weight * z;
        h_offset += weight;
      }
      double d_slope = 0, d_offset = -g_offset / h_offset;
      if (both) {
        const double determinant = h_slope * h_offset - h_both * h_both;
        d_slope = -(h_offset * g_slope - h_both * g_offset) / determinant;
        d_offset = -(h_slope * g_offset - h_both * g_slope) / determinant;
      }
      double share = 1, reached = held;
      for (int halvings = 0; halvings <= kMostHalvings; ++halvings) {
        share = std::ldexp(1.0, -halvings);
        reached = loss(slope_ + share * d_slope, offset_ + share * d_offset);
        if (reached < held) break;
      }
      if (!(reached < held)) return;
      slope_ += share * d_slope;
      offset_ += share * d_offset;
      if (held - reached < kClose) return;
      held = reached;
    }
  }

  std::span<const Judged> judged_;
  double right_, wrong_;  ///< what is learned for a right and a wrong one
  double slope_ = 1, offset_ = 0;
};

/// Every threshold, from the surest prediction on.
std::vector<Taken> all_thresholds(std::span<const Judged> judged) {
  std::vector<Judged> sorted(judged.begin(), judged.end());
  std::ranges::sort(sorted, std::greater(), &Judged::confidence);
  std::vector<Taken> all;
  double right = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    right += sorted[i].right;
    // Equal confidence is taken together.
    if (i + 1 < sorted.size() && sorted[i + 1].confidence == sorted[i].confidence) continue;
    const auto taken = static_cast<double>(i + 1);
    all.push_back({sorted[i].confidence, taken / static_cast<double>(sorted.size()), right / taken});
  }
  return all;
}

/// Whether the gold says of any item that nothing is right.
bool names_absent(std::span<const MetricItem> items) {
  return std::ranges::any_of(items, [](const MetricItem& item) {
    return item.references.empty() || item.references.front().front() == "n/a";
  });
}

bool turns_null(const MetricItem& item, double bias) {
  return item.null_margin && item.prediction && !item.prediction->empty() && bias > *item.null_margin;
}

nlohmann::ordered_json taken_json(const Taken& taken) {
  return {{"coverage", taken.coverage}, {"precision", taken.precision}, {"confidence", taken.confidence}};
}

nlohmann::ordered_json summary_json(const ConfidenceSummary& summary) {
  nlohmann::ordered_json json{
      {"items", summary.items}, {"right", summary.right}, {"mean", summary.mean}, {"ece", summary.error}};
  for (const auto& [goal, taken] : summary.goals)
    json["taken_at"][fmt::format("{}", goal)] = taken ? taken_json(*taken) : nlohmann::ordered_json(nullptr);
  json["curve"] = nlohmann::ordered_json::array();
  for (const Taken& taken : summary.curve) json["curve"].push_back(taken_json(taken));
  return json;
}

std::string summary_text(std::span<const Judged> judged, const char* what) {
  if (judged.empty()) return {};
  const ConfidenceSummary summary = summarize_confidence(judged);
  std::string text = fmt::format(
      "confidence of {} {}: {:.4f} on average, {:.4f} are right; expected calibration error {:.4f}\n",
      summary.items, what, summary.mean,
      static_cast<double>(summary.right) / static_cast<double>(summary.items), summary.error);
  for (const auto& [goal, taken] : summary.goals) {
    text += fmt::format("  at {:.0f} % precision ", 100 * goal);
    text += taken ? fmt::format("{} of {} can be accepted without review (confidence {:.4g} or more)\n",
                                percent_text(taken->coverage), what, taken->confidence)
                  : fmt::format("none of the {} can be accepted without review\n", what);
  }
  return text;
}

/// Thresholds that are tested; each at this share of the risk, so that the choice among them costs nothing.
constexpr int64_t kThresholds = 20;

/// The chance that of `taken` predictions at least `right` are, if each is with probability `precision`.
double chance_of_right(int64_t taken, int64_t right, double precision) {
  if (right == 0 || precision >= 1) return 1;
  const auto n = static_cast<double>(taken);
  double chance = 0;
  for (int64_t k = right; k <= taken; ++k) {
    const auto r = static_cast<double>(k);
    chance += std::exp(std::lgamma(n + 1) - std::lgamma(r + 1) - std::lgamma(n - r + 1) +
                       r * std::log(precision) + (n - r) * std::log1p(-precision));
  }
  return std::min(chance, 1.0);
}

}  // namespace

double ConfidenceScale::apply(double confidence) const {
  return sigmoid(logit(confidence) / temperature + offset);
}

ConfidenceScale fit_scale(std::span<const Judged> judged) {
  return ScaleFit(judged).fit();
}

double calibration_error(std::span<const Judged> judged) {
  struct Bin {
    double confidence = 0, right = 0;
  };
  std::array<Bin, kBins> bins;
  for (const Judged& one : judged) {
    const auto index = static_cast<size_t>(one.confidence * static_cast<double>(kBins));
    Bin& bin = bins[std::min(index, kBins - 1)];
    bin.confidence += one.confidence;
    bin.right += one.right;
  }
  double sum = 0;
  for (const Bin& bin : bins) sum += std::abs(bin.confidence - bin.right);
  return judged.empty() ? 0 : sum / static_cast<double>(judged.size());
}

std::optional<Taken> most_taken(std::span<const Judged> judged, double precision) {
  std::optional<Taken> most;
  for (const Taken& taken : all_thresholds(judged))
    if (taken.precision >= precision) most = taken;
  return most;
}

int64_t fewest_to_promise(double precision, double risk) {
  return static_cast<int64_t>(std::ceil(std::log(risk / kThresholds) / std::log(precision)));
}

std::optional<PromisedThreshold> promise_precision(std::span<const Judged> judged, double precision,
                                                   double risk) {
  std::vector<Judged> sorted(judged.begin(), judged.end());
  std::ranges::sort(sorted, std::greater(), &Judged::confidence);
  const auto items = std::ssize(sorted);
  std::optional<PromisedThreshold> lowest;
  int64_t taken = 0, right = 0;
  for (int64_t step = 1; step <= kThresholds; ++step) {
    const int64_t wanted = items * step / kThresholds;
    // Equal ones are taken together.
    while (taken < items && (taken < wanted || sorted[static_cast<size_t>(taken)].confidence ==
                                                   sorted[static_cast<size_t>(taken - 1)].confidence))
      right += sorted[static_cast<size_t>(taken++)].right;
    if (taken == 0 || chance_of_right(taken, right, precision) > risk / kThresholds) continue;
    lowest = {sorted[static_cast<size_t>(taken - 1)].confidence, taken, right, 0};
  }
  if (!lowest) return lowest;
  // The exact (Clopper-Pearson) bound, by halving.
  double low = precision, high = 1;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (chance_of_right(lowest->taken, lowest->right, middle) <= risk / kThresholds ? low : high) = middle;
  }
  lowest->bound = low;
  return lowest;
}

ConfidenceSummary summarize_confidence(std::span<const Judged> judged) {
  ConfidenceSummary summary;
  summary.items = static_cast<int64_t>(judged.size());
  for (const Judged& one : judged) {
    summary.right += one.right;
    summary.mean += one.confidence / static_cast<double>(judged.size());
  }
  summary.error = calibration_error(judged);
  for (const double goal : kGoals) summary.goals.emplace_back(goal, most_taken(judged, goal));
  const std::vector<Taken> all = all_thresholds(judged);
  auto at = all.begin();
  for (int i = 1; i <= kCurvePoints && at != all.end(); ++i) {
    const double wanted = static_cast<double>(i) / kCurvePoints;
    at = std::find_if(at, all.end(), [&](const Taken& taken) { return taken.coverage >= wanted; });
    if (at != all.end() && (summary.curve.empty() || summary.curve.back().coverage < at->coverage))
      summary.curve.push_back(*at);
  }
  return summary;
}

JudgedItems judged_items(std::span<const MetricItem> items, const Scores& scores) {
  JudgedItems judged;
  const Metric& metric = *scores.metric;
  if (metric.right < 0) return judged;
  const bool absent = names_absent(items);
  for (size_t i = 0; i < items.size(); ++i) {
    const double right = scores.items[i * metric.scores.size() + static_cast<size_t>(metric.right)];
    if (!items[i].confidence || !items[i].prediction || std::isnan(right)) continue;
    const Judged one{*items[i].confidence, right > 0};
    if (items[i].prediction->empty()) {
      if (absent) judged.nulls.push_back(one);
      continue;
    }
    judged.values.push_back(one);
    if (!items[i].attribute.empty())
      judged.attributes[{items[i].category, items[i].attribute}].push_back(one);
  }
  return judged;
}

nlohmann::ordered_json confidence_json(const JudgedItems& judged) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!judged.values.empty()) json["values"] = summary_json(summarize_confidence(judged.values));
  if (!judged.nulls.empty()) json["nulls"] = summary_json(summarize_confidence(judged.nulls));
  for (const auto& [name, values] : judged.attributes)
    json["attributes"][name.first][name.second] = {
        {"items", values.size()},
        {"right", std::ranges::count(values, true, &Judged::right)},
        {"ece", calibration_error(values)}};
  return json;
}

std::string confidence_text(const JudgedItems& judged) {
  return summary_text(judged.values, "values") + summary_text(judged.nulls, "nulls");
}

int64_t values_without_margin(std::span<const MetricItem> items) {
  return std::ranges::count_if(items, [](const MetricItem& item) {
    return item.prediction && !item.prediction->empty() && !item.null_margin;
  });
}

size_t bias_value(const Metric& metric) {
  for (size_t i = 0; i < metric.values.size(); ++i)
    if (metric.values[i].name == "f1" || metric.values[i].name.ends_with("_f1")) return i;
  return metric.main >= 0 ? static_cast<size_t>(metric.main) : 0;
}

std::vector<BiasScores> sweep_null_bias(const Metric& metric, std::span<const MetricItem> items,
                                        double ran_with) {
  std::vector<MetricItem> now(items.begin(), items.end());
  std::vector<BiasScores> sweep;
  for (int step = 0; step <= kBiasSteps; ++step) {
    const double bias = ran_with + step * kBiasStep;
    for (MetricItem& item : now)
      if (turns_null(item, bias)) item.prediction->clear();
    const Scores scores = score_items(metric, now, {.resamples = 0});
    const auto nulls = std::ranges::count_if(
        now, [](const MetricItem& item) { return item.prediction && item.prediction->empty(); });
    sweep.push_back({bias, scores.values, scores.values[bias_value(metric)],
                     static_cast<double>(nulls) / static_cast<double>(std::max<size_t>(now.size(), 1))});
    const bool more = std::ranges::any_of(
        now, [&](const MetricItem& item) { return turns_null(item, ran_with + kWidestBias); });
    if (!more) break;
  }
  return sweep;
}

const BiasScores& best_bias(std::span<const BiasScores> sweep) {
  return *std::ranges::max_element(sweep, {}, &BiasScores::score);
}

}  // namespace sheaf

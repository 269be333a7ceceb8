// Right or wrong: a choice among options, and whether two runs gave the same answer.
#include <algorithm>

#include "core/metrics/metrics.h"
#include "core/metrics/python_text.h"

namespace sheaf {
namespace {

void count(bool right, std::span<double> terms, std::span<double> scores) {
  scores[0] = terms[0] = right ? 1 : 0;
  terms[1] = 1;
}

void measure_choice(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  const auto is_accepted = [&](const std::string& answer) {
    return std::any_of(item.references.begin(), item.references.end(), [&](const auto& reference) {
      return python::strip(reference.front()) == python::strip(answer);
    });
  };
  count(item.prediction && std::any_of(item.prediction->begin(), item.prediction->end(), is_accepted), terms,
        scores);
}

/// The one reference is the other run's answer, spans and all; no reference: it said there is none.
void measure_agreement(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  const bool same =
      item.prediction &&
      (item.references.empty() ? item.prediction->empty() : *item.prediction == item.references.front());
  count(same, terms, scores);
}

void evaluate_share(std::span<const double> sums, std::span<double> values) {
  values[0] = sums[0] / sums[1];
  values[1] = sums[1];
}

constexpr std::string_view choice_scores[] = {"accuracy"};
constexpr Metric::ValueName choice_values[] = {{"accuracy"}, {"total", true}};
constexpr std::string_view agreement_scores[] = {"exact_match"};
constexpr Metric::ValueName agreement_values[] = {{"exact_match"}, {"total", true}};

}  // namespace

Metric accuracy_metric() {
  return {.name = "accuracy",
          .about = "multiple choice (RACE, LongHealth): the share of right options, by letter or by text",
          .values = choice_values,
          .scores = choice_scores,
          .right = 0,
          .terms = 2,
          .measure = measure_choice,
          .evaluate = evaluate_share};
}

Metric agreement_metric() {
  return {.name = "agreement",
          .about = "exact match between two runs: --gold and --pred are both predictions",
          .values = agreement_values,
          .scores = agreement_scores,
          .right = 0,
          .terms = 2,
          .measure = measure_agreement,
          .evaluate = evaluate_share};
}

}  // namespace sheaf

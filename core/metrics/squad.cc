// SQuAD 1.1 and 2.0 as their official scripts (evaluate-v1.1.py, evaluate-v2.0.py) count.
#include <algorithm>
#include <cmath>

#include "core/metrics/answer_tokens.h"
#include "core/metrics/metrics.h"

namespace sheaf {
namespace {

using Tokens = std::vector<std::string>;

Tokens predicted_tokens(const MetricItem& item) {
  return item.prediction->empty() ? Tokens{} : answer_tokens(item.prediction->front());
}

enum Term { has_exact, has_f1, has_total, no_exact, no_f1, no_total };

void measure_squad2(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  std::vector<Tokens> gold;
  for (const auto& reference : item.references) {
    gold.push_back(answer_tokens(reference.front()));
    if (gold.back().empty()) gold.pop_back();
  }
  if (gold.empty()) gold.emplace_back();
  double exact = 0, f1 = 0;
  if (item.prediction) {
    const Tokens predicted = predicted_tokens(item);
    const TokenBag bag(predicted);
    for (const Tokens& wanted : gold) {
      const bool same = predicted == wanted;
      exact = std::max(exact, same ? 1.0 : 0.0);
      f1 = std::max(f1, predicted.empty() || wanted.empty() ? (same ? 1.0 : 0.0) : bag.f1(TokenBag(wanted)));
    }
  }
  scores[0] = exact;
  scores[1] = f1;
  // The split goes by whether there are answers at all, even if nothing is left of them.
  const size_t split = item.references.empty() ? no_exact : has_exact;
  terms[split] = exact;
  terms[split + 1] = f1;
  terms[split + 2] = 1;
}

void evaluate_squad2(std::span<const double> sums, std::span<double> values) {
  const double total = sums[has_total] + sums[no_total];
  values[0] = 100 * (sums[has_exact] + sums[no_exact]) / total;
  values[1] = 100 * (sums[has_f1] + sums[no_f1]) / total;
  values[2] = total;
  for (size_t split = 0; split < 2; ++split) {
    const double n = sums[3 * split + 2];
    values[3 + 3 * split] = 100 * sums[3 * split] / n;
    values[4 + 3 * split] = 100 * sums[3 * split + 1] / n;
    values[5 + 3 * split] = n > 0 ? n : NAN;  // a split that is empty has no values
  }
}

void measure_squad1(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  if (item.prediction) {
    const Tokens predicted = predicted_tokens(item);
    const TokenBag bag(predicted);
    for (const auto& reference : item.references) {
      const Tokens wanted = answer_tokens(reference.front());
      scores[0] = std::max(scores[0], predicted == wanted ? 1.0 : 0.0);
      scores[1] = std::max(scores[1], bag.f1(TokenBag(wanted)));
    }
  }
  terms[0] = scores[0];
  terms[1] = scores[1];
  terms[2] = 1;
}

void evaluate_squad1(std::span<const double> sums, std::span<double> values) {
  values[0] = 100 * sums[0] / sums[2];
  values[1] = 100 * sums[1] / sums[2];
  values[2] = sums[2];
}

constexpr std::string_view scores[] = {"exact", "f1"};
constexpr Metric::ValueName values2[] = {{"exact"},
                                         {"f1"},
                                         {"total", true},
                                         {"HasAns_exact", false, true},
                                         {"HasAns_f1", false, true},
                                         {"HasAns_total", true, true},
                                         {"NoAns_exact", false, true},
                                         {"NoAns_f1", false, true},
                                         {"NoAns_total", true, true}};
constexpr std::string_view scores1[] = {"exact_match", "f1"};
constexpr Metric::ValueName values1[] = {{"exact_match"}, {"f1"}, {"total", true}};

}  // namespace

Metric squad_metric() {
  return {.name = "squad",
          .about = "SQuAD 2.0: exact match and F1 of words, with questions that have no answer",
          .values = values2,
          .scores = scores,
          .right = 0,
          .terms = 6,
          .best = 100,
          .measure = measure_squad2,
          .evaluate = evaluate_squad2};
}

Metric squad1_metric() {
  return {.name = "squad1",
          .about = "SQuAD 1.1: exact match and F1 of words",
          .values = values1,
          .scores = scores1,
          .right = 0,
          .terms = 3,
          .best = 100,
          .measure = measure_squad1,
          .evaluate = evaluate_squad1};
}

}  // namespace sheaf

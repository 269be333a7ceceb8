// HotpotQA as its official hotpot_evaluate_v1.py counts answers: words as SQuAD's, but "yes", "no" and
// "noanswer" are worth nothing beside anything else.
#include <algorithm>

#include "core/metrics/answer_tokens.h"
#include "core/metrics/metrics.h"

namespace sheaf {
namespace {

using Tokens = std::vector<std::string>;

bool is_verdict(const Tokens& tokens) {
  return tokens.size() == 1 && (tokens[0] == "yes" || tokens[0] == "no" || tokens[0] == "noanswer");
}

void measure_hotpotqa(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  terms[4] = 1;
  if (!item.prediction) return;
  const Tokens predicted = item.prediction->empty() ? Tokens{} : answer_tokens(item.prediction->front());
  const TokenBag bag(predicted);
  for (const auto& reference : item.references) {
    const Tokens wanted = answer_tokens(reference.front());
    scores[0] = std::max(scores[0], predicted == wanted ? 1.0 : 0.0);
    if (predicted != wanted && (is_verdict(predicted) || is_verdict(wanted))) continue;
    const TokenOverlap overlap = bag.overlap(TokenBag(wanted));
    if (overlap.f1 <= scores[1]) continue;
    scores[1] = overlap.f1;
    scores[2] = overlap.precision;
    scores[3] = overlap.recall;
  }
  std::copy_n(scores.begin(), 4, terms.begin());
}

void evaluate_hotpotqa(std::span<const double> sums, std::span<double> values) {
  for (size_t i = 0; i < 4; ++i) values[i] = sums[i] / sums[4];
  values[4] = sums[4];
}

constexpr std::string_view scores[] = {"em", "f1", "prec", "recall"};
constexpr Metric::ValueName values[] = {{"em"}, {"f1"}, {"prec"}, {"recall"}, {"total", true}};

}  // namespace

Metric hotpotqa_metric() {
  return {.name = "hotpotqa",
          .about = "HotpotQA: exact match and F1 of words of the answer, where yes and no are all or nothing",
          .values = values,
          .scores = scores,
          .right = 0,
          .terms = 5,
          .measure = measure_hotpotqa,
          .evaluate = evaluate_hotpotqa};
}

}  // namespace sheaf

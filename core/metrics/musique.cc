// MuSiQue as its official evaluate_v1.0.py counts answers: words as SQuAD 2.0's, the best of the answer and
// its aliases; a question that cannot be answered does not count.
#include <algorithm>
#include <cmath>

#include "core/metrics/answer_tokens.h"
#include "core/metrics/metrics.h"

namespace sheaf {
namespace {

using Tokens = std::vector<std::string>;

void measure_musique(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  if (item.references.empty()) {
    std::fill(scores.begin(), scores.end(), NAN);
    return;
  }
  if (item.prediction) {
    const Tokens predicted = item.prediction->empty() ? Tokens{} : answer_tokens(item.prediction->front());
    const TokenBag bag(predicted);
    for (const auto& reference : item.references) {
      const Tokens wanted = answer_tokens(reference.front());
      const double same = predicted == wanted ? 1 : 0;
      scores[0] = std::max(scores[0], predicted.empty() || wanted.empty() ? same : bag.f1(TokenBag(wanted)));
      scores[1] = std::max(scores[1], same);
    }
  }
  std::copy_n(scores.begin(), 2, terms.begin());
  terms[2] = 1;
}

void evaluate_musique(std::span<const double> sums, std::span<double> values) {
  values[0] = sums[0] / sums[2];
  values[1] = sums[1] / sums[2];
  values[2] = sums[2];
}

constexpr std::string_view scores[] = {"answer_f1", "answer_em"};
constexpr Metric::ValueName values[] = {{"answer_f1"}, {"answer_em"}, {"total", true}};

}  // namespace

Metric musique_metric() {
  return {.name = "musique",
          .about = "MuSiQue: F1 of words and exact match of the answer, the best of its aliases",
          .values = values,
          .scores = scores,
          .right = 1,
          .terms = 3,
          .measure = measure_musique,
          .evaluate = evaluate_musique};
}

}  // namespace sheaf

#include "core/model/router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace sheaf {
namespace {

void make_scores(RouterScores kind, std::span<float> logits) {
  if (kind == RouterScores::sigmoid) {
    for (float& logit : logits) logit = 1 / (1 + std::exp(-logit));
    return;
  }
  const float most = *std::ranges::max_element(logits);
  float sum = 0;
  for (float& logit : logits) sum += logit = std::exp(logit - most);
  for (float& score : logits) score /= sum;
}

}  // namespace

void route(const Experts& experts, std::span<float> logits, std::span<const float> bias,
           std::span<Choice> chosen) {
  const bool finite = std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); });
  make_scores(experts.scores, logits);
  const auto rank = [&](int32_t expert) {
    const auto i = static_cast<size_t>(expert);
    return logits[i] + (bias.empty() ? 0 : bias[i]);
  };
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  if (finite)
    std::ranges::partial_sort(order, order.begin() + std::ssize(chosen), [&](int32_t a, int32_t b) {
      return rank(a) > rank(b) || (rank(a) == rank(b) && a < b);
    });
  float sum = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const float score = logits[static_cast<size_t>(order[i])];
    chosen[i] = {order[i], finite ? score : std::numeric_limits<float>::quiet_NaN()};
    sum += score;
  }
  for (Choice& choice : chosen) {
    // As the models were trained: scores of sigmoids may all be nearly 0.
    if (experts.normalized) choice.weight /= experts.scores == RouterScores::sigmoid ? sum + 1e-20f : sum;
    choice.weight *= experts.factor;
  }
}

}  // namespace sheaf

#include "core/model/router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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
  if (experts.logit_bias) {
    for (size_t i = 0; i < logits.size(); ++i) logits[i] += bias[i];
    bias = {};
  }
  const bool finite = std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); });
  make_scores(experts.scores, logits);
  const auto rank = [&](int32_t expert) {
    const auto i = static_cast<size_t>(expert);
    return logits[i] + (bias.empty() ? 0 : bias[i]);
  };
  size_t filled = 0;
  for (int32_t expert = 0; std::cmp_less(expert, logits.size()); ++expert) {
    size_t at = filled;
    while (at > 0 && rank(chosen[at - 1].expert) < rank(expert)) --at;
    if (at == chosen.size()) continue;
    filled = std::min(filled + 1, chosen.size());
    std::shift_right(chosen.begin() + static_cast<ptrdiff_t>(at),
                     chosen.begin() + static_cast<ptrdiff_t>(filled), 1);
    chosen[at].expert = expert;
  }
  float sum = 0;
  for (Choice& choice : chosen) {
    const float score = logits[static_cast<size_t>(choice.expert)];
    choice.weight = finite ? score : std::numeric_limits<float>::quiet_NaN();
    sum += score;
  }
  for (Choice& choice : chosen) {
    // As the models were trained: scores of sigmoids may all be nearly 0.
    if (experts.normalized) choice.weight /= experts.scores == RouterScores::sigmoid ? sum + 1e-20f : sum;
    choice.weight *= experts.factor;
  }
}

}  // namespace sheaf

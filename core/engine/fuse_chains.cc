#include <algorithm>
#include <cmath>
#include <vector>

#include "core/engine/step_batch.h"

namespace sheaf {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

/// (1 + b) e - b a is NaN where both are minus infinity.
float clean(float score) {
  return score == score ? score : kNever;
}

/// Whether no score is NaN or plus infinity.
bool is_sound(std::span<const float> row) {
  bool sound = true;
  for (const float score : row) sound &= score < std::numeric_limits<float>::infinity();
  return sound;
}

/// log of the sum of e^score(i); minus infinity where there is nothing to add.
template <class Score>
double log_sum_exp(size_t count, Score&& score) {
  float top = kNever;
  for (size_t i = 0; i < count; ++i) top = std::max(top, score(i));
  if (std::isinf(top)) return static_cast<double>(top);
  double sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum += std::exp(static_cast<double>(score(i)) - static_cast<double>(top));
  return static_cast<double>(top) + std::log(sum);
}

double log_normalizer(std::span<const float> row) {
  return log_sum_exp(row.size(), [&](size_t i) { return row[i]; });
}

/// Jensen-Shannon divergence of two rows of logits whose normalizers are known.
double divergence(std::span<const float> a, double normalizer_a, std::span<const float> b,
                  double normalizer_b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double log_p = static_cast<double>(a[i]) - normalizer_a;
    const double log_q = static_cast<double>(b[i]) - normalizer_b;
    const double p = std::exp(log_p), q = std::exp(log_q), log_mean = std::log((p + q) / 2);
    if (p > 0) sum += p * (log_p - log_mean);
    if (q > 0) sum += q * (log_q - log_mean);
  }
  return std::isfinite(sum) ? std::max(0.0, sum / 2) : 0;
}

}  // namespace

float fuse_chains(std::span<const Pick> group, const float* logits, size_t stride, std::span<float> fused,
                  std::vector<double>* offsets) {
  const size_t vocab = fused.size(), chains = group.size() - 1;
  const auto row = [&](size_t pick) { return std::span(logits + pick * stride, vocab); };
  const std::span amateur = row(0);
  if (offsets) offsets->assign(chains, 0);
  float contrast = group[0].contrast;
  for (size_t pick = 0; pick <= chains; ++pick)
    if (!is_sound(row(pick))) {
      std::ranges::fill(fused, std::numeric_limits<float>::quiet_NaN());
      return 0;
    }
  if (contrast < 0) {
    const double normalizer = log_normalizer(amateur);
    double sum = 0;
    for (size_t k = 1; k <= chains; ++k)
      sum += divergence(row(k), log_normalizer(row(k)), amateur, normalizer);
    contrast = static_cast<float>(sum / static_cast<double>(chains));
  }
  const auto contrasted = [&](size_t k, size_t i) {
    const float logit = row(k)[i];
    return contrast == 0 ? logit : clean((1 + contrast) * logit - contrast * amateur[i]);
  };
  if (group[0].aggregate == Aggregate::max) {
    for (size_t i = 0; i < vocab; ++i) {
      float best = kNever;
      for (size_t k = 1; k <= chains; ++k) best = std::max(best, contrasted(k, i) + group[k].prior);
      fused[i] = best;
    }
    if (offsets)
      for (size_t k = 1; k <= chains; ++k) (*offsets)[k - 1] = static_cast<double>(group[k].prior);
    return contrast;
  }
  // A chain whose scores are all impossible has no say.
  std::vector<double> normalizers(chains + 1), log_weights(chains + 1);
  const double total = log_sum_exp(chains, [&](size_t k) { return group[k + 1].prior; });
  for (size_t k = 1; k <= chains; ++k) {
    normalizers[k] = log_sum_exp(vocab, [&](size_t i) { return contrasted(k, i); });
    log_weights[k] = static_cast<double>(group[k].prior) - total;
    if (offsets)
      (*offsets)[k - 1] = std::isfinite(normalizers[k]) ? log_weights[k] - normalizers[k] : double{kNever};
  }
  for (size_t i = 0; i < vocab; ++i) {
    const auto log_probability = [&](size_t k) {
      return static_cast<double>(contrasted(k, i)) - normalizers[k];
    };
    double score = 0;
    for (size_t k = 1; k <= chains; ++k) {
      if (!std::isfinite(normalizers[k])) continue;
      if (group[0].aggregate == Aggregate::mixture)
        score += std::exp(log_probability(k) + log_weights[k]);
      else if (const double weight = std::exp(log_weights[k]); weight > 0)
        score += weight * log_probability(k);
    }
    fused[i] = static_cast<float>(group[0].aggregate == Aggregate::mixture ? std::log(score) : score);
  }
  return contrast;
}

namespace {

/// The chain that spoke a token, from 1.
int32_t voice_of(TokenId token, const float* logits, size_t stride, float contrast,
                 std::span<const double> offsets) {
  size_t best = 0;
  double highest = -std::numeric_limits<double>::infinity();
  for (size_t k = 0; k < offsets.size(); ++k) {
    const auto logit = static_cast<double>(clean(logits[(k + 1) * stride + static_cast<size_t>(token)]));
    const double score = (1 + static_cast<double>(contrast)) * logit + offsets[k];
    if (score > highest) {
      highest = score;
      best = k;
    }
  }
  return static_cast<int32_t>(best) + 1;
}

}  // namespace

Picked pick_next(std::span<const Pick> picks, std::span<const TokenId> all_allowed, const float* logits,
                 size_t stride, size_t vocab) {
  const Pick& pick = picks[0];
  const auto allowed =
      all_allowed.subspan(static_cast<size_t>(pick.first_allowed), static_cast<size_t>(pick.allowed_count));
  if (pick.chains == 0) return pick_token({logits, vocab}, pick, allowed);
  std::vector<float> fused(vocab);
  std::vector<double> offsets;
  const float contrast =
      fuse_chains(picks.first(1 + static_cast<size_t>(pick.chains)), logits, stride, fused, &offsets);
  Picked picked = pick_token(fused, pick, allowed);
  picked.contrast = contrast;
  picked.voice = voice_of(picked.token, logits, stride, contrast, offsets);
  return picked;
}

}  // namespace sheaf

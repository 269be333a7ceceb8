#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/engine/step_batch.h"

namespace sheaf {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr int kLanes = 16;  // independent lanes that the compiler turns into vectors

float clean(float logit) {
  return logit == logit ? logit : kNever;
}

float highest(std::span<const float> logits) {
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, kNever);
  size_t i = 0;
  // A comparison with NaN is false, so NaN never wins.
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = logits[i + lane] > lanes[lane] ? logits[i + lane] : lanes[lane];
  float best = *std::max_element(lanes, lanes + kLanes);
  for (; i < logits.size(); ++i) best = logits[i] > best ? logits[i] : best;
  return best;
}

TokenId most_likely(std::span<const float> logits, std::span<const TokenId> allowed, float top) {
  if (allowed.empty()) {
    if (top == kNever) return 0;  // NaN and minus infinity are one tie
    const auto found = std::find(logits.begin(), logits.end(), top);
    return static_cast<TokenId>(found - logits.begin());
  }
  TokenId best = allowed.front();
  for (const TokenId token : allowed) {
    const float logit = clean(logits[token]);
    const float held = clean(logits[best]);
    if (logit > held || (logit == held && token < best)) best = token;
  }
  return best;
}

// Two doubles, the width that every 64-bit machine has. Written out because the compiler does not find it
// itself (11 ns a logit instead of 2).
using Pair = double __attribute__((vector_size(16)));
using IntPair = int64_t __attribute__((vector_size(16)));

/// e^x for x <= 0 to about 1e-10 of itself; all below -700 counts as -700, next to nothing.
Pair exp_of_negative(Pair x) {
  constexpr double kRound =
      6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer, left in the low bits
  const Pair lowest = {-700.0, -700.0};
  x = x > lowest ? x : lowest;
  const Pair shifted = x * 1.4426950408889634 + kRound;
  const Pair n = shifted - kRound;
  const Pair r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  Pair p = r * (1.0 / 40320) + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return p * std::bit_cast<Pair>((std::bit_cast<IntPair>(shifted) + 1023) << 52);
}

// Four floats, written out for the reason given at Pair.
using Quad = float __attribute__((vector_size(16)));
using IntQuad = int32_t __attribute__((vector_size(16)));

/// e^x for x <= 0 to about 3e-7 of itself; all below -87 counts as -87, next to nothing. NaN stays.
[[gnu::always_inline]] inline Quad exp_of_negative(Quad x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, left in the low bits
  const Quad lowest = Quad{} - 87.0f;
  x = x < lowest ? lowest : x;
  x *= 1.44269504f;
  const Quad shifted = x + kRound;
  const Quad f = x - (shifted - kRound), square = f * f;
  const Quad p =
      ((f * 1.3276472e-3f + 9.67554133e-3f) * square + (f * 5.55071327e-2f + 2.40221197e-1f)) * square +
      (f * 6.93146967e-1f + 1.0f);
  return p * std::bit_cast<Quad>((std::bit_cast<IntQuad>(shifted) + 127) << 23);
}

/// Of a multiple of kLanes logits, few enough for a float.
float sum_stretch(const float* logits, size_t count, float top) {
  Quad lanes[kLanes / 4] = {};
  for (size_t i = 0; i < count; i += kLanes) {
    Quad quads[kLanes / 4];
    std::memcpy(quads, logits + i, sizeof quads);
#pragma GCC unroll 4
    for (size_t lane = 0; lane < kLanes / 4; ++lane) lanes[lane] += exp_of_negative(quads[lane] - top);
  }
  const Quad all = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  return (all[0] + all[1]) + (all[2] + all[3]);
}

double sum_of_exp(std::span<const float> logits, float top) {
  constexpr size_t kStretch = 16 * kLanes;
  const size_t whole = logits.size() / kLanes * kLanes;
  double sum = 0;
  for (size_t i = 0; i < whole; i += kStretch)
    sum += static_cast<double>(sum_stretch(logits.data() + i, std::min(kStretch, whole - i), top));
  float rest[kLanes];
  std::fill(rest, rest + kLanes, kNever);
  std::copy(logits.begin() + static_cast<std::ptrdiff_t>(whole), logits.end(), rest);
  return sum + static_cast<double>(sum_stretch(rest, kLanes, top));
}

/// Log-probabilities over the whole vocabulary, whose highest logit is `top`. All are NaN where the logits
/// are not sound: the sum is over each of them, so it costs nothing to find a NaN.
class LogProbabilities {
 public:
  LogProbabilities(std::span<const float> logits, float top)
      : top_(top), log_sum_(std::isinf(top) ? kNotSound : std::log(sum_of_exp(logits, top))) {}

  float of(float logit) const {
    if (std::isnan(log_sum_)) return static_cast<float>(log_sum_);
    if (logit == kNever) return kNever;
    return static_cast<float>(static_cast<double>(logit) - top_ - log_sum_);
  }

 private:
  static constexpr double kNotSound = std::numeric_limits<double>::quiet_NaN();

  float top_;
  double log_sum_;
};

/// The most likely token but `apart`; -1 where no other is allowed.
TokenId likeliest_apart(std::span<const float> logits, std::span<const TokenId> allowed, TokenId apart) {
  TokenId best = -1;
  const auto look = [&](TokenId token) {
    if (token != apart && (best < 0 || clean(logits[token]) > clean(logits[best]))) best = token;
  };
  for (const TokenId token : allowed) look(token);
  if (allowed.empty())
    for (size_t i = 0; i < logits.size(); ++i) look(static_cast<TokenId>(i));
  return best;
}

/// The highest logit that may be chosen, those of two tokens apart (-1: none).
float highest_apart(std::span<const float> logits, std::span<const TokenId> allowed, TokenId a, TokenId b) {
  float best = kNever;
  for (const TokenId token : allowed)
    if (token != a && token != b) best = std::max(best, clean(logits[token]));
  if (!allowed.empty()) return best;
  size_t begin = 0;
  for (const TokenId cut : {std::min(a, b), std::max(a, b)}) {
    if (cut < static_cast<TokenId>(begin)) continue;
    best = std::max(best, highest(logits.subspan(begin, static_cast<size_t>(cut) - begin)));
    begin = static_cast<size_t>(cut) + 1;
  }
  return std::max(best, highest(logits.subspan(begin)));
}

TokenId choose_greedily(std::span<const float> logits, const Pick& pick, std::span<const TokenId> allowed,
                        float top) {
  if (pick.watch < 0 || pick.bias == 0) return most_likely(logits, allowed, top);
  const TokenId other = likeliest_apart(logits, allowed, pick.watch);
  if (other < 0) return pick.watch;
  const float biased = clean(logits[pick.watch]) + pick.bias;
  const float held = clean(logits[other]);
  return biased > held || (biased == held && pick.watch < other) ? pick.watch : other;
}

/// Candidates of a sample, sorted by falling probability (then rising id) only as far as the sample needs.
class Candidates {
 public:
  Candidates(std::span<const float> logits, const Pick& pick, std::span<const TokenId> allowed) {
    const auto temperature = static_cast<double>(pick.temperature);
    float top = kNever;
    const auto add = [&](TokenId token) {
      const float logit = clean(logits[token]) + (token == pick.watch ? pick.bias : 0.0f);
      if (logit == kNever) return;
      top = std::max(top, logit);
      entries_.push_back({logit, token, 0});
    };
    entries_.reserve(allowed.empty() ? logits.size() : allowed.size());
    if (allowed.empty())
      for (size_t i = 0; i < logits.size(); ++i) add(static_cast<TokenId>(i));
    else
      for (const TokenId token : allowed) add(token);
    const auto below = [&](const Entry& entry) {
      return entry.logit == top ? 0.0
                                : (static_cast<double>(entry.logit) - static_cast<double>(top)) / temperature;
    };
    for (size_t i = 0; i < entries_.size(); i += 2) {
      Entry& first = entries_[i];
      Entry& second = entries_[std::min(i + 1, entries_.size() - 1)];
      const Pair weights = exp_of_negative(Pair{below(first), below(second)});
      first.weight = weights[0];
      second.weight = weights[1];
      total_ += &first == &second ? weights[0] : weights[0] + weights[1];
    }
    // Most samples fall among the few likely candidates: part them first, so that only they are ever sorted.
    const auto likely = [&](const Entry& entry) { return entry.weight > 1e-5 * total_; };
    likely_ =
        static_cast<size_t>(std::partition(entries_.begin(), entries_.end(), likely) - entries_.begin());
  }

  bool empty() const { return entries_.empty(); }
  double total() const { return total_; }

  void keep_top(int32_t count) {
    if (static_cast<size_t>(count) >= entries_.size()) return;
    sort_first(static_cast<size_t>(count));
    entries_.resize(static_cast<size_t>(count));
    likely_ = std::min(likely_, entries_.size());
    total_ = 0;
    for (const Entry& entry : entries_) total_ += entry.weight;
  }

  /// The fewest candidates whose weights reach `goal`, as their number and their weight.
  std::pair<size_t, double> reach(double goal) {
    double sum = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      sum += at(i).weight;
      if (sum >= goal) return {i + 1, sum};
    }
    return {entries_.size(), sum};
  }

  /// The candidate at which the running weight passes `goal`, among the first `count`.
  TokenId pass(double goal, size_t count) {
    count = std::min(count, entries_.size());
    double sum = 0;
    TokenId last = at(0).token;
    for (size_t i = 0; i < count; ++i) {
      const Entry& entry = at(i);
      if (entry.weight > 0) last = entry.token;
      sum += entry.weight;
      if (sum > goal) break;
    }
    return last;
  }

 private:
  struct Entry {
    float logit;
    TokenId token;
    double weight;
  };

  const Entry& at(size_t i) {
    const size_t most = i < likely_ ? likely_ : entries_.size();
    if (i >= sorted_) sort_first(std::min(most, std::max<size_t>(64, 8 * i)));
    return entries_[i];
  }

  void sort_first(size_t count) {
    if (count <= sorted_) return;
    const auto before = [](const Entry& a, const Entry& b) {
      return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
    };
    const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    const auto middle = entries_.begin() + static_cast<std::ptrdiff_t>(count);
    const auto last =
        entries_.begin() + static_cast<std::ptrdiff_t>(count <= likely_ ? likely_ : entries_.size());
    if (middle != last) std::nth_element(first, middle, last, before);
    std::sort(first, middle, before);
    sorted_ = count;
  }

  std::vector<Entry> entries_;
  size_t likely_ = 0;  ///< candidates before all others
  size_t sorted_ = 0;
  double total_ = 0;
};

TokenId sample(std::span<const float> logits, const Pick& pick, std::span<const TokenId> allowed) {
  Candidates candidates(logits, pick, allowed);
  if (candidates.empty()) return allowed.empty() ? 0 : *std::min_element(allowed.begin(), allowed.end());
  if (pick.top_k > 0) candidates.keep_top(pick.top_k);
  size_t count = std::numeric_limits<size_t>::max();
  double total = candidates.total();
  if (pick.top_p < 1) std::tie(count, total) = candidates.reach(static_cast<double>(pick.top_p) * total);
  return candidates.pass(static_cast<double>(pick.uniform) * total, count);
}

}  // namespace

Picked pick_token(std::span<const float> logits, const Pick& pick, std::span<const TokenId> allowed) {
  if (logits.empty()) fail("sheaf tried to pick a token without logits; please report this bug");
  for (const TokenId token : allowed)
    if (token < 0 || static_cast<size_t>(token) >= logits.size())
      fail("pick: allowed token {} is outside the vocabulary of {}", token, logits.size());
  const float top = highest(logits);
  const TokenId token =
      pick.temperature > 0 ? sample(logits, pick, allowed) : choose_greedily(logits, pick, allowed, top);
  const LogProbabilities probabilities(logits, top);
  Picked picked{token, probabilities.of(logits[token])};
  if (pick.listed)
    for (size_t i = 0; i < allowed.size(); ++i) pick.listed[i] = probabilities.of(logits[allowed[i]]);
  if (!pick.rivals) return picked;
  picked.second = probabilities.of(highest_apart(logits, allowed, token, pick.watch));
  if (pick.watch >= 0) picked.watched = probabilities.of(logits[pick.watch]);
  return picked;
}

}  // namespace sheaf

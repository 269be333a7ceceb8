#pragma once
#include "cuda/attention/hopper_softmax.h"

/// What a model does to scores before the softmax is a policy of the Hopper kernel.
namespace sheaf::cuda {
namespace {

/// Nothing.
struct PlainScores {
  __device__ void begin(const HeadLayout&, RunningSoftmax&) {}
  template <int count>
  __device__ void apply(float (&)[count]) const {}
};

/// A soft cap: score becomes cap · tanh(score / cap), which is cap - 2 cap / (exp(2 score / cap) + 1). That
/// is exact to a few 1e-7 of the cap where the tanh of the device is to 5e-4 of the score.
struct CappedScores {
  float cap;
  float inner[2];  ///< what takes scores to the exponent, in base 2

  /// Capped scores have no scale any more: the softmax need not take them back from one.
  __device__ void begin(const HeadLayout& layout, RunningSoftmax& softmax) {
    constexpr float kTwice = 2.8853900817779268f;  // 2 log2(e)
    cap = layout.score_cap;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      inner[i] = softmax.factor[i] * (kTwice / cap);
      softmax.factor[i] = 1;
    }
  }
  template <int count>
  __device__ void apply(float (&score)[count]) const {
#pragma unroll
    for (int n = 0; n < count; ++n)
      score[n] = fmaf(-2 * cap, fast_reciprocal(fast_exp2(score[n] * inner[n / 2 % 2]) + 1), cap);
  }
};

}  // namespace
}  // namespace sheaf::cuda

#pragma once
#include <cstdint>

#include "core/model/activation.h"
#include "core/model/panel.h"

namespace sheaf {

/// The inner loops of the quick backend for one instruction set.
struct Kernels {
  const char* name;
  int64_t panels_at_once;  ///< panels that a multiply of many rows takes together

  /// c[i][16p + j] (+)= Σₖ a[i][k] · b[p · panel_stride + k · row_stride + j], k rising from 0 to depth, one
  /// fused multiply-add each: the result is the same however rows, panels and depth are cut into calls.
  void (*multiply)(const float* const* a, float* const* c, int64_t rows, const float* b, int64_t row_stride,
                   int64_t panel_stride, int64_t depth, int64_t panels, bool accumulate);

  /// Replaces n scores by exp(score - highest) and returns their sum. There must be room for n rounded up to
  /// kPanel.
  float (*softmax)(float* scores, int64_t n);

  /// The weights e^(score + log_scale), scaled so that the largest is kMostWeight, as whole numbers of two
  /// planes, their bytes flipped. Returns the sum of weight · inverse_scale, of the largest as 1, and of
  /// e^sink, which is minus infinity for none. Everything has room for n rounded up to kPanel, where the
  /// scales are 0; the scores are lost.
  static constexpr float kMostWeight = 127.0f * 256;
  float (*weigh)(float* scores, const float* log_scales, const float* inverse_scales, int64_t n, uint8_t flip,
                 int8_t* high, int8_t* low, float sink);

  /// out = x / sqrt(mean(x²) + eps) * weight; out may be x.
  void (*rms_norm)(const float* x, const float* weight, int64_t n, float eps, float* out);

  /// out[i] = activation(gate) · up, or as Activation::clamped says, for rows of a panel's gates and then its
  /// ups, `stride` floats apart.
  using Gated = void (*)(const float* both, int64_t stride, int64_t rows, float* out, int64_t out_stride);
  Gated gated_silu, gated_gelu, gated_clamped;
  Gated gated(Activation activation) const {
    return activation == Activation::silu        ? gated_silu
           : activation == Activation::gelu_tanh ? gated_gelu
                                                 : gated_clamped;
  }

  /// x = cap · tanh(x / cap) for n values, with room for n rounded up to kPanel.
  void (*soft_cap)(float* x, int64_t n, float cap);
};

/// The multiply of an instruction set, which lies in a file of its own: it is compiled with other flags.
struct MultiplyKernel {
  int64_t panels_at_once;
  decltype(Kernels::multiply) multiply;
};
MultiplyKernel base_multiply();
#if defined(__x86_64__)
MultiplyKernel avx2_multiply();
MultiplyKernel avx512_multiply();
#endif

/// The best kernels this machine can run.
const Kernels& best_kernels();

const Kernels& base_kernels();
#if defined(__x86_64__)
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
#endif

}  // namespace sheaf

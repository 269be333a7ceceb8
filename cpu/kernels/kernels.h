#pragma once
#include <cstdint>

#include "core/model/panel.h"

namespace sheaf {

/// The weights of a row: their sum, and what the whole numbers are multiples of.
struct Weights {
  float sum = 0;
  float scale = 0;
};

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

  /// The weights exp(score - highest) · value_scale as whole numbers of two planes, their bytes flipped, and
  /// the sum of exp(score - highest). Everything has room for n rounded up to kPanel; value_scales are 0 from
  /// n on. The scores are lost.
  Weights (*weigh)(float* scores, const float* value_scales, int64_t n, uint8_t flip, int8_t* high,
                   int8_t* low);

  /// out = x / sqrt(mean(x²) + eps) * weight; out may be x.
  void (*rms_norm)(const float* x, const float* weight, int64_t n, float eps, float* out);

  /// out = silu(gate) * up; out may be gate.
  void (*gated_silu)(const float* gate, const float* up, int64_t n, float* out);
};

/// The best kernels this machine can run.
const Kernels& best_kernels();

const Kernels& base_kernels();
#if defined(__x86_64__)
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
#endif

}  // namespace sheaf

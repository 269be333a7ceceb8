
#include "cpu/kernels/int_kernels.h"

/// Plain loops, for machines without instructions for 8-bit products, and what the others are tested against.
namespace sheaf {
namespace {

constexpr int64_t kChunk = 16;
constexpr int64_t kStep = 4;

/// Hands the sums of every row and panel to `put(row, panel, high, low)`.
template <class Put>
void each_sum(const IntFactors& factors, Put&& put) {
  const int64_t row_bytes = factors.chunks * kChunk * factors.planes;
  for (int64_t panel = 0; panel < factors.panels; ++panel)
    for (int64_t row = 0; row < factors.rows; ++row) {
      int32_t high[kPanel] = {}, low[kPanel] = {};
      for (int64_t chunk = 0; chunk < factors.chunks; ++chunk) {
        const int8_t* from = factors.a + row * row_bytes + chunk * kChunk * factors.planes;
        const int8_t* weights = factors.b + panel * factors.panel_stride + chunk * factors.chunk_stride;
        const auto add = [&](int row_plane, int weight_plane, int32_t(&sums)[kPanel]) {
          for (int64_t k = 0; k < kChunk; ++k)
            for (int64_t j = 0; j < kPanel; ++j)
              sums[j] +=
                  int32_t{from[row_plane * kChunk + k]} *
                  weights[weight_plane * kChunk * kPanel + (k / kStep * kPanel + j) * kStep + k % kStep];
        };
        add(0, 0, high);
        if (factors.planes == 2) {
          add(1, 0, low);
          add(0, 1, low);
        }
      }
      put(row, panel, high, low);
    }
}

void multiply(const IntFactors& factors, const float* row_scales, const float* column_scales,
              float* const* c) {
  each_sum(factors, [&](int64_t row, int64_t panel, const int32_t* high, const int32_t* low) {
    for (int64_t j = 0; j < kPanel; ++j) {
      const float sum = factors.planes == 1
                            ? static_cast<float>(high[j])
                            : static_cast<float>(high[j]) * 256.0f + static_cast<float>(low[j]);
      const float row_scale = row_scales[row] * (factors.planes == 1 ? 1.0f : 256.0f);
      c[row][panel * kPanel + j] = sum * (column_scales[panel * kPanel + j] * row_scale);
    }
  });
}

void add(const IntFactors& factors, int32_t* const* sums) {
  each_sum(factors, [&](int64_t row, int64_t panel, const int32_t* high, const int32_t* low) {
    int32_t* to = sums[row] + panel * 2 * kPanel;
    for (int64_t j = 0; j < kPanel; ++j) {
      to[j] += high[j];
      to[kPanel + j] += low[j];
    }
  });
}

}  // namespace

const IntKernels& plain_int_kernels() {
  static constexpr IntKernels kernels{"plain", {kChunk, kStep, 1}, {kChunk, kStep, kPanel}, multiply, add};
  return kernels;
}

}  // namespace sheaf

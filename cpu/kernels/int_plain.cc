#include <cstddef>

#include "cpu/kernels/int_kernels.h"

/// Plain loops, for machines without instructions for 8-bit products, and what the others are tested against.
namespace sheaf {
namespace {

constexpr int64_t kStep = 4;

void multiply(const int8_t* a, const float* row_scales, int64_t rows, const int8_t* b,
              const float* column_scales, int64_t panels, int64_t chunks, int planes, float* c,
              int64_t c_stride) {
  constexpr int64_t kChunk = IntKernels::kChunk;
  const int64_t row_bytes = chunks * kChunk * planes;
  for (int64_t panel = 0; panel < panels; ++panel)
    for (int64_t row = 0; row < rows; ++row) {
      int32_t high[kPanel] = {}, low[kPanel] = {};
      const int8_t* from = a + row * row_bytes;
      const int8_t* weights = b + panel * kPanel * row_bytes;
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        const auto add = [&](int row_plane, int weight_plane, int32_t(&sums)[kPanel]) {
          for (int64_t k = 0; k < kChunk; ++k)
            for (int64_t j = 0; j < kPanel; ++j)
              sums[j] +=
                  int32_t{from[row_plane * kChunk + k]} *
                  weights[weight_plane * kChunk * kPanel + (k / kStep * kPanel + j) * kStep + k % kStep];
        };
        add(0, 0, high);
        if (planes == 2) {
          add(1, 0, low);
          add(0, 1, low);
        }
        from += kChunk * planes;
        weights += kChunk * planes * kPanel;
      }
      float* to = c + row * c_stride + panel * kPanel;
      for (int64_t j = 0; j < kPanel; ++j) {
        const float sum = planes == 1 ? static_cast<float>(high[j])
                                      : static_cast<float>(high[j]) * 256.0f + static_cast<float>(low[j]);
        to[j] = sum * (planes == 1 ? 1.0f : 256.0f) * (row_scales[row] * column_scales[panel * kPanel + j]);
      }
    }
}

}  // namespace

const IntKernels& plain_int_kernels() {
  static constexpr IntKernels kernels{"plain", kStep, 1, 0, multiply};
  return kernels;
}

}  // namespace sheaf

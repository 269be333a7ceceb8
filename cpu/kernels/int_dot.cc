#include <arm_neon.h>
#include <cstddef>

#include "cpu/kernels/int_kernels.h"
#include "cpu/kernels/unroll.h"

/// SDOT: four columns over four inputs of one row, 32 operations, two a cycle on a Neoverse-N1. A tile of 5
/// rows × 16 columns (one plane) or 5 × 8 (two) holds its 20 sums in registers over the whole depth.
namespace sheaf {
namespace {

constexpr int kMostRows = 5;

template <int Planes, int Rows>
[[gnu::always_inline]] inline void multiply_tile(const int8_t* a, int64_t row_bytes, const float* row_scales,
                                                 const int8_t* b, const float* column_scales, int64_t chunks,
                                                 float* c, int64_t c_stride) {
  constexpr int kQuads = Planes == 1 ? 4 : 2;  // of columns
  int32x4_t high[Rows * kQuads];
  int32x4_t low[Planes == 2 ? Rows * kQuads : 1];
  unroll<Rows * kQuads>([&](auto i) __attribute__((always_inline)) {
    high[i] = vdupq_n_s32(0);
    if constexpr (Planes == 2) low[i] = vdupq_n_s32(0);
  });
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    // The planes of a chunk are 16 bytes apart in a row and 256 in a panel.
    const auto add = [&](int row_plane, int weight_plane, int32x4_t* sums) __attribute__((always_inline)) {
      int8x16_t rows[Rows];
      unroll<Rows>([&](auto r) __attribute__((always_inline)) {
        rows[r] = vld1q_s8(a + r * row_bytes + 16 * row_plane);
      });
      unroll<4>([&](auto step) __attribute__((always_inline)) {
        unroll<kQuads>([&](auto q) __attribute__((always_inline)) {
          const int8x16_t weights = vld1q_s8(b + 256 * weight_plane + 64 * step + 16 * q);
          unroll<Rows>([&](auto r) __attribute__((always_inline)) {
            sums[r * kQuads + q] = vdotq_laneq_s32(sums[r * kQuads + q], weights, rows[r], step);
          });
        });
      });
    };
    add(0, 0, high);
    if constexpr (Planes == 2) {
      add(1, 0, low);
      add(0, 1, low);
    }
    a += 16 * Planes;
    b += 256 * Planes;
  }
  unroll<Rows>([&](auto r) __attribute__((always_inline)) {
    unroll<kQuads>([&](auto q) __attribute__((always_inline)) {
      float32x4_t sum = vcvtq_f32_s32(high[r * kQuads + q]);
      if constexpr (Planes == 2)
        sum = vmulq_n_f32(vaddq_f32(vmulq_n_f32(sum, 256.0f), vcvtq_f32_s32(low[r * kQuads + q])), 256.0f);
      const float32x4_t scales = vmulq_n_f32(vld1q_f32(column_scales + 4 * q), row_scales[r]);
      vst1q_f32(c + r * c_stride + 4 * q, vmulq_f32(sum, scales));
    });
  });
}

/// `groups` groups of Rows rows; a panel stays in the first cache while all groups pass over it.
template <int Planes, int Rows>
void multiply_groups(const int8_t* a, const float* row_scales, int64_t groups, const int8_t* b,
                     const float* column_scales, int64_t panels, int64_t chunks, float* c, int64_t c_stride) {
  const int64_t row_bytes = chunks * 16 * Planes;
  for (int64_t panel = 0; panel < panels; ++panel)
    for (int64_t group = 0; group < groups; ++group)
      for (int half = 0; half < Planes; ++half) {
        const int64_t row = group * Rows;
        const int64_t column = panel * kPanel + half * 8;
        multiply_tile<Planes, Rows>(a + row * row_bytes, row_bytes, row_scales + row,
                                    b + panel * kPanel * row_bytes + half * 32, column_scales + column,
                                    chunks, c + row * c_stride + column, c_stride);
      }
}

template <int Planes>
void multiply_planes(const int8_t* a, const float* row_scales, int64_t rows, const int8_t* b,
                     const float* column_scales, int64_t panels, int64_t chunks, float* c, int64_t c_stride) {
  using Groups = decltype(&multiply_groups<Planes, 1>);
  constexpr Groups kGroups[kMostRows + 1] = {nullptr,
                                             multiply_groups<Planes, 1>,
                                             multiply_groups<Planes, 2>,
                                             multiply_groups<Planes, 3>,
                                             multiply_groups<Planes, 4>,
                                             multiply_groups<Planes, 5>};
  // Groups as even as can be: 6 rows are 3 + 3, never 5 + 1.
  const int64_t groups = (rows + kMostRows - 1) / kMostRows;
  const int64_t small = rows / groups;
  const int64_t large_groups = rows % groups;
  if (large_groups > 0)
    kGroups[small + 1](a, row_scales, large_groups, b, column_scales, panels, chunks, c, c_stride);
  const int64_t done = large_groups * (small + 1);
  kGroups[small](a + done * chunks * 16 * Planes, row_scales + done, groups - large_groups, b, column_scales,
                 panels, chunks, c + done * c_stride, c_stride);
}

void multiply(const int8_t* a, const float* row_scales, int64_t rows, const int8_t* b,
              const float* column_scales, int64_t panels, int64_t chunks, int planes, float* c,
              int64_t c_stride) {
  if (rows == 0) return;
  const auto run = planes == 1 ? multiply_planes<1> : multiply_planes<2>;
  run(a, row_scales, rows, b, column_scales, panels, chunks, c, c_stride);
}

}  // namespace

const IntKernels& dot_int_kernels() {
  static constexpr IntKernels kernels{"dot product", 4, 1, multiply};
  return kernels;
}

}  // namespace sheaf

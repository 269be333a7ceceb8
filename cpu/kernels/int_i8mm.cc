#include <arm_neon.h>
#include <cstddef>

#include "cpu/kernels/int_kernels.h"
#include "cpu/kernels/unroll.h"

/// SMMLA: two rows × two columns over eight inputs, 64 operations, four a cycle on a Neoverse-V1.
///
/// Work: 2 · rows · inputs · 16 · panels operations with one plane, three times that with two. A tile of 6
/// rows × 16 columns (one plane) or 6 × 8 (two) holds its 24 sums in registers over the whole depth and loads
/// 11 (14) vectors for 24 (36) SMMLAs, so loads do not bind.
namespace sheaf {
namespace {

constexpr int kMostPairs = 3;

/// Sums of `Pairs` pairs of rows and `Columns` pairs of columns as [row 0 · c0, row 0 · c1, row 1 · c0, …].
template <int Planes, int Pairs, int Columns>
struct Tile {
  int32x4_t high[Pairs * Columns];
  int32x4_t low[Planes == 2 ? Pairs * Columns : 1];

  [[gnu::always_inline]] void clear() {
    unroll<Pairs * Columns>([&](auto i) __attribute__((always_inline)) {
      high[i] = vdupq_n_s32(0);
      if constexpr (Planes == 2) low[i] = vdupq_n_s32(0);
    });
  }

  /// Eight inputs; the planes of a chunk are 32 bytes apart in a pair of rows and 256 in a panel.
  [[gnu::always_inline]] void add(const int8_t* a, int64_t pair_bytes, const int8_t* b) {
    int8x16_t rows[Pairs];
    int8x16_t low_rows[Planes == 2 ? Pairs : 1];
    unroll<Pairs>([&](auto p) __attribute__((always_inline)) {
      rows[p] = vld1q_s8(a + p * pair_bytes);
      if constexpr (Planes == 2) low_rows[p] = vld1q_s8(a + p * pair_bytes + 32);
    });
    unroll<Columns>([&](auto c) __attribute__((always_inline)) {
      const int8x16_t weights = vld1q_s8(b + 16 * c);
      unroll<Pairs>([&](auto p) __attribute__((always_inline)) {
        high[p * Columns + c] = vmmlaq_s32(high[p * Columns + c], rows[p], weights);
      });
      if constexpr (Planes == 2) {
        unroll<Pairs>([&](auto p) __attribute__((always_inline)) {
          low[p * Columns + c] = vmmlaq_s32(low[p * Columns + c], low_rows[p], weights);
        });
        const int8x16_t low_weights = vld1q_s8(b + 256 + 16 * c);
        unroll<Pairs>([&](auto p) __attribute__((always_inline)) {
          low[p * Columns + c] = vmmlaq_s32(low[p * Columns + c], rows[p], low_weights);
        });
      }
    });
  }

  [[gnu::always_inline]] static float32x4_t whole(int32x4_t high, int32x4_t low) {
    const float32x4_t sum = vcvtq_f32_s32(high);
    if constexpr (Planes == 1) return sum;
    return vmulq_n_f32(vaddq_f32(vmulq_n_f32(sum, 256.0f), vcvtq_f32_s32(low)), 256.0f);
  }

  /// Row `Row` of pair `Pair`, four columns from 4 · Quad on.
  template <int Pair, int Row, int Quad>
  [[gnu::always_inline]] float32x4_t row() const {
    constexpr int kFirst = Pair * Columns + 2 * Quad;
    const auto half = [](int32x4_t left, int32x4_t right) __attribute__((always_inline)) {
      const int64x2_t l = vreinterpretq_s64_s32(left), r = vreinterpretq_s64_s32(right);
      return vreinterpretq_s32_s64(Row == 0 ? vtrn1q_s64(l, r) : vtrn2q_s64(l, r));
    };
    constexpr int kLow = Planes == 2 ? kFirst : 0, kNext = Planes == 2 ? kFirst + 1 : 0;
    return whole(half(high[kFirst], high[kFirst + 1]), half(low[kLow], low[kNext]));
  }
};

template <int Planes, int Pairs>
[[gnu::always_inline]] inline void multiply_tile(const int8_t* a, int64_t pair_bytes, const float* row_scales,
                                                 int64_t rows, const int8_t* b, const float* column_scales,
                                                 int64_t chunks, float* c, int64_t c_stride) {
  constexpr int kColumns = Planes == 1 ? 8 : 4;  // pairs
  Tile<Planes, Pairs, kColumns> tile;
  tile.clear();
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    tile.add(a, pair_bytes, b);
    tile.add(a + 16, pair_bytes, b + 128);
    a += 32 * Planes;
    b += 256 * Planes;
  }
  unroll<2 * Pairs>([&](auto r) __attribute__((always_inline)) {
    if (r >= rows) return;
    unroll<kColumns / 2>([&](auto q) __attribute__((always_inline)) {
      const float32x4_t scales = vmulq_n_f32(vld1q_f32(column_scales + 4 * q), row_scales[r]);
      vst1q_f32(c + r * c_stride + 4 * q, vmulq_f32(tile.template row<r / 2, r % 2, q>(), scales));
    });
  });
}

/// `groups` groups of Pairs pairs of rows; a panel stays in the first cache while all groups pass over it.
template <int Planes, int Pairs>
void multiply_groups(const int8_t* a, const float* row_scales, int64_t groups, int64_t rows, const int8_t* b,
                     const float* column_scales, int64_t panels, int64_t chunks, float* c, int64_t c_stride) {
  const int64_t pair_bytes = chunks * 32 * Planes;
  for (int64_t panel = 0; panel < panels; ++panel)
    for (int64_t group = 0; group < groups; ++group)
      for (int half = 0; half < Planes; ++half) {
        const int64_t row = group * 2 * Pairs;
        const int64_t column = panel * kPanel + half * 8;
        multiply_tile<Planes, Pairs>(a + group * Pairs * pair_bytes, pair_bytes, row_scales + row, rows - row,
                                     b + panel * 8 * pair_bytes + half * 64, column_scales + column, chunks,
                                     c + row * c_stride + column, c_stride);
      }
}

template <int Planes>
void multiply_planes(const int8_t* a, const float* row_scales, int64_t rows, const int8_t* b,
                     const float* column_scales, int64_t panels, int64_t chunks, float* c, int64_t c_stride) {
  using Groups = decltype(&multiply_groups<Planes, 1>);
  constexpr Groups kGroups[kMostPairs + 1] = {nullptr, multiply_groups<Planes, 1>, multiply_groups<Planes, 2>,
                                              multiply_groups<Planes, 3>};
  // Groups as even as can be: 8 rows are 4 + 4, never 6 + 2.
  const int64_t pairs = (rows + 1) / 2;
  const int64_t groups = (pairs + kMostPairs - 1) / kMostPairs;
  const int64_t small = pairs / groups;
  const int64_t large_groups = pairs % groups;
  if (large_groups > 0)
    kGroups[small + 1](a, row_scales, large_groups, rows, b, column_scales, panels, chunks, c, c_stride);
  const int64_t done = 2 * large_groups * (small + 1);
  kGroups[small](a + done * chunks * 16 * Planes, row_scales + done, groups - large_groups, rows - done, b,
                 column_scales, panels, chunks, c + done * c_stride, c_stride);
}

void multiply(const int8_t* a, const float* row_scales, int64_t rows, const int8_t* b,
              const float* column_scales, int64_t panels, int64_t chunks, int planes, float* c,
              int64_t c_stride) {
  if (rows == 0) return;
  const auto run = planes == 1 ? multiply_planes<1> : multiply_planes<2>;
  run(a, row_scales, rows, b, column_scales, panels, chunks, c, c_stride);
}

}  // namespace

const IntKernels& i8mm_int_kernels() {
  static constexpr IntKernels kernels{"i8mm", 8, 2, multiply};
  return kernels;
}

}  // namespace sheaf

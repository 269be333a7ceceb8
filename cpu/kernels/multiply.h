#pragma once
#include "cpu/kernels/vector.h"

/// The one multiply of the quick backend: weights (panels packed [K][16]), attention scores (keys packed the
/// same way) and the weighted sum of values.
///
/// Work: 2 · rows · depth · 16 · panels FLOPs. It reads b once per call (64 bytes a step and panel), a once a
/// panel. From about 8 rows on the multiply-adds bind; below that, reading the weights does.
///
/// Ladder, Neoverse-V1, one core (4 × 128-bit FMA at 2.6 GHz: 83 GFLOP/s at most; OpenBLAS sgemm: 61), K 576,
/// N 1536:
///   4 rows × 16 columns, array of sums indexed in loops    42 GFLOP/s: the sums are kept on the stack
///   the same with unrolled constant indices                51: the compiler's scheduling spills
///   8 × 16                                                 42: more sums than registers
///   3 × 16, 4 × 16, 6 × 16 without compiler scheduling     65, 68, 68
///   5 × 16 without compiler scheduling                     72: here. 20 sums, 5 rows, 4 columns: 29 of 32
///   registers
/// One row: 1 × 64 streams the weights at 29–30 GB/s, the memory's own rate (28 by a plain read loop).
/// Lanes lie along the columns, so a sum never crosses lanes and its order is k alone.
namespace sheaf {
namespace {

constexpr int kMostRows = 5;

/// Four values of a row of a, each to be multiplied with a vector of b.
#if defined(__aarch64__)
using Quad = float32x4_t;
[[gnu::always_inline]] inline Quad load_quad(const float* from) {
  return vld1q_f32(from);
}
template <int Lane>
[[gnu::always_inline]] inline Vec fma_lane(Quad a, Vec b, Vec c) {
  return vfmaq_laneq_f32(c, b, a, Lane);
}
#else
using Quad = const float*;
[[gnu::always_inline]] inline Quad load_quad(const float* from) {
  return from;
}
template <int Lane>
[[gnu::always_inline]] inline Vec fma_lane(Quad a, Vec b, Vec c) {
  return fma(broadcast(a[Lane]), b, c);
}
#endif

/// Rows × Panels · 16 sums in registers over the whole depth.
template <int Rows, int Panels>
[[gnu::always_inline]] inline void multiply_tile(const float* const* a, float* const* c, int64_t column,
                                                 const float* b, int64_t row_stride, int64_t panel_stride,
                                                 int64_t depth, bool accumulate) {
  constexpr int kVectors = Panels * kPerPanel;
  Vec sums[Rows * kVectors];
  const float* rows[Rows];
  unroll<Rows>([&](auto r) __attribute__((always_inline)) { rows[r] = a[r]; });
  if (accumulate)
    unroll<Rows * kVectors>([&](auto i) __attribute__((always_inline)) {
      sums[i] = load(c[i / kVectors] + column + kLanes * (i % kVectors));
    });
  else
    unroll<Rows * kVectors>([&](auto i) __attribute__((always_inline)) { sums[i] = Vec{}; });

  int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    Quad quads[Rows];
    unroll<Rows>([&](auto r) __attribute__((always_inline)) { quads[r] = load_quad(rows[r] + k); });
    unroll<4>([&](auto lane) __attribute__((always_inline)) {
      unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
        const Vec column_values =
            load(b + (v / kPerPanel) * panel_stride + lane * row_stride + kLanes * (v % kPerPanel));
        unroll<Rows>([&](auto r) __attribute__((always_inline)) {
          Vec& sum = sums[r * kVectors + v];
          sum = fma_lane<lane>(quads[r], column_values, sum);
        });
      });
    });
    b += 4 * row_stride;
  }
  for (; k < depth; ++k) {
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      const Vec column_values = load(b + (v / kPerPanel) * panel_stride + kLanes * (v % kPerPanel));
      unroll<Rows>([&](auto r) __attribute__((always_inline)) {
        Vec& sum = sums[r * kVectors + v];
        sum = fma(broadcast(rows[r][k]), column_values, sum);
      });
    });
    b += row_stride;
  }
  unroll<Rows * kVectors>([&](auto i) __attribute__((always_inline)) {
    store(c[i / kVectors] + column + kLanes * (i % kVectors), sums[i]);
  });
}

constexpr int panels_at_once(int rows) {
  const int fit = kAccumulators / (rows * kPerPanel);
  return fit >= 4 ? 4 : fit >= 2 ? 2 : 1;
}

/// `groups` groups of Rows rows; a panel stays in the first cache while all groups pass over it.
template <int Rows>
void multiply_groups(const float* const* a, float* const* c, int64_t groups, const float* b,
                     int64_t row_stride, int64_t panel_stride, int64_t depth, int64_t panels,
                     bool accumulate) {
  constexpr int kAtOnce = panels_at_once(Rows);
  int64_t p = 0;
  for (; p + kAtOnce <= panels; p += kAtOnce)
    for (int64_t g = 0; g < groups; ++g)
      multiply_tile<Rows, kAtOnce>(a + g * Rows, c + g * Rows, p * kPanel, b + p * panel_stride, row_stride,
                                   panel_stride, depth, accumulate);
  for (; p < panels; ++p)
    for (int64_t g = 0; g < groups; ++g)
      multiply_tile<Rows, 1>(a + g * Rows, c + g * Rows, p * kPanel, b + p * panel_stride, row_stride,
                             panel_stride, depth, accumulate);
}

void multiply(const float* const* a, float* const* c, int64_t rows, const float* b, int64_t row_stride,
              int64_t panel_stride, int64_t depth, int64_t panels, bool accumulate) {
  if (rows == 0) return;
  using Groups = decltype(&multiply_groups<1>);
  constexpr Groups kGroups[kMostRows + 1] = {
      nullptr,           multiply_groups<1>, multiply_groups<2>, multiply_groups<3>, multiply_groups<4>,
      multiply_groups<5>};
  // Groups as even as can be: 6 rows are 3 + 3, never 5 + 1.
  const int64_t groups = (rows + kMostRows - 1) / kMostRows;
  const int64_t small = rows / groups;
  const int64_t large_groups = rows % groups;
  if (large_groups > 0)
    kGroups[small + 1](a, c, large_groups, b, row_stride, panel_stride, depth, panels, accumulate);
  const int64_t done = large_groups * (small + 1);
  kGroups[small](a + done, c + done, groups - large_groups, b, row_stride, panel_stride, depth, panels,
                 accumulate);
}

}  // namespace
}  // namespace sheaf

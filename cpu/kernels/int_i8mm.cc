#include <arm_neon.h>
#include <cstddef>

#include "cpu/kernels/int_neon.h"

/// SMMLA: two rows × two columns over eight inputs, 64 operations, four a cycle on a Neoverse-V1.
///
/// Work: 2 · rows · inputs · 16 · panels operations with one plane, three times that with two. A tile of 6
/// rows × 16 columns (one plane) or 6 × 8 (two) holds its 24 sums in registers over the whole depth and loads
/// 11 (14) vectors for 24 (36) SMMLAs, so loads do not bind.
namespace sheaf {
namespace {

/// Sums of `Pairs` pairs of rows and `Columns` pairs of columns as [row 0 · c0, row 0 · c1, row 1 · c0, …].
template <int Planes, int Pairs, int Columns>
struct Sums {
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

  /// Row `Row` of pair `Pair`, four columns from 4 · Quad on.
  template <int Pair, int Row, int Quad>
  [[gnu::always_inline]] static int32x4_t row(const int32x4_t* sums) {
    constexpr int kFirst = Pair * Columns + 2 * Quad;
    const int64x2_t left = vreinterpretq_s64_s32(sums[kFirst]),
                    right = vreinterpretq_s64_s32(sums[kFirst + 1]);
    return vreinterpretq_s32_s64(Row == 0 ? vtrn1q_s64(left, right) : vtrn2q_s64(left, right));
  }
};

struct I8mmTiles {
  static constexpr int kTogether = 2;
  static constexpr int kMost[] = {0, 3, 3};
  static constexpr int kColumns[] = {0, 16, 8};

  static constexpr int kColumnBytes = 8;

  template <int Planes, int Pairs, class Out>
  [[gnu::always_inline]] static void tile(const int8_t* a, int64_t pair_bytes, int64_t rows, const int8_t* b,
                                          int64_t chunk_stride, int64_t chunks, int64_t column,
                                          const Out& out) {
    constexpr int kQuads = kColumns[Planes] / 4;
    Sums<Planes, Pairs, 2 * kQuads> sums;
    sums.clear();
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      sums.add(a, pair_bytes, b);
      sums.add(a + 16, pair_bytes, b + 128);
      a += 32 * Planes;
      b += chunk_stride;
    }
    unroll<2 * Pairs>([&](auto r) __attribute__((always_inline)) {
      if (r >= rows) return;
      unroll<kQuads>([&](auto q) __attribute__((always_inline)) {
        constexpr int kPair = r / 2, kRow = r % 2, kQuad = q;
        const int32x4_t high = sums.template row<kPair, kRow, kQuad>(sums.high);
        int32x4_t low = high;
        if constexpr (Planes == 2) low = sums.template row<kPair, kRow, kQuad>(sums.low);
        put<Planes>(out, r, column + 4 * q, high, low);
      });
    });
  }
};

}  // namespace

const IntKernels& i8mm_int_kernels() {
  static constexpr IntKernels kernels{
      "i8mm", {kChunk, 8, 2}, {kChunk, 8, kPanel}, multiply<I8mmTiles>, add<I8mmTiles>};
  return kernels;
}

}  // namespace sheaf

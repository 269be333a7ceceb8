#include <arm_neon.h>

#include "cpu/kernels/int_i8mm_loop.h"
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

  /// Adds rows × weights, eight inputs of one plane each.
  [[gnu::always_inline]] static void add_plane(int32x4_t* sums, const int8x16_t (&rows)[Pairs],
                                               const int8_t* weights) {
    unroll<Columns>([&](auto c) __attribute__((always_inline)) {
      const int8x16_t columns = vld1q_s8(weights + 16 * c);
      unroll<Pairs>([&](auto p) __attribute__((always_inline)) {
        sums[p * Columns + c] = vmmlaq_s32(sums[p * Columns + c], rows[p], columns);
      });
    });
  }

  /// Eight inputs; the planes of a chunk are 32 bytes apart in a pair of rows and 256 in a panel.
  [[gnu::always_inline]] void add(const int8_t* a, int64_t pair_bytes, const int8_t* b) {
    int8x16_t rows[Pairs];
    unroll<Pairs>([&](auto p) __attribute__((always_inline)) { rows[p] = vld1q_s8(a + p * pair_bytes); });
    add_plane(high, rows, b);
    if constexpr (Planes == 2) {
      add_plane(low, rows, b + 256);
      unroll<Pairs>([&](auto p)
                        __attribute__((always_inline)) { rows[p] = vld1q_s8(a + p * pair_bytes + 32); });
      add_plane(low, rows, b);
    }
  }

  /// Hands the sums of the first `rows` rows to Out.
  [[gnu::always_inline]] void put_rows(const Scaled& out, int64_t rows, int64_t column,
                                       int64_t chunks) const {
    float32x4_t floats[Pairs * Columns];
    const bool in_32_bits = Planes == 2 && chunks * kChunk <= kInputsIn32Bits;
    if (in_32_bits)
      unroll<Pairs * Columns>([&](auto i) __attribute__((always_inline)) {
        floats[i] = to_floats_in_32_bits(high[i], low[Planes == 2 ? i : 0]);
      });
    else
      unroll<Pairs * Columns>([&](auto i) __attribute__((always_inline)) {
        floats[i] = to_floats<Planes>(high[i], low[Planes == 2 ? i : 0]);
      });
    float32x4_t scales[Columns / 2];
    unroll<Columns / 2>([&](auto q) __attribute__((always_inline)) {
      scales[q] = vld1q_f32(out.column_scales + column + 4 * q);
    });
    unroll<2 * Pairs>([&](auto r) __attribute__((always_inline)) {
      if (r >= rows) return;
      const ScaledRow<Planes> row(out, r);
      unroll<Columns / 2>([&](auto q) __attribute__((always_inline)) {
        constexpr int kFirst = r / 2 * Columns + 2 * q;
        const float64x2_t left = vreinterpretq_f64_f32(floats[kFirst]),
                          right = vreinterpretq_f64_f32(floats[kFirst + 1]);
        row.put(column + 4 * q, scales[q],
                vreinterpretq_f32_f64(r % 2 == 0 ? vtrn1q_f64(left, right) : vtrn2q_f64(left, right)));
      });
    });
  }
  [[gnu::always_inline]] void put_rows(const Added& out, int64_t rows, int64_t column,
                                       int64_t /*chunks*/) const {
    unroll<2 * Pairs>([&](auto r) __attribute__((always_inline)) {
      if (r >= rows) return;
      unroll<Columns / 2>([&](auto q) __attribute__((always_inline)) {
        constexpr int kFirst = r / 2 * Columns + 2 * q;
        const auto row = [&](const int32x4_t* sums) __attribute__((always_inline)) {
          const int64x2_t left = vreinterpretq_s64_s32(sums[kFirst]),
                          right = vreinterpretq_s64_s32(sums[kFirst + 1]);
          return vreinterpretq_s32_s64(r % 2 == 0 ? vtrn1q_s64(left, right) : vtrn2q_s64(left, right));
        };
        put<Planes>(out, r, column + 4 * q, row(high), row(low));
      });
    });
  }
};

struct I8mmTiles {
  static constexpr int kTogether = 2;
  static constexpr int kMost[] = {0, 3, 3};
  static constexpr int kColumns[] = {0, 16, 8};

  static constexpr int kColumnBytes = 8;

  template <int Planes, int Pairs, class Out>
  [[gnu::always_inline]] static void tile(const int8_t* a, int64_t pair_bytes, int64_t rows, const int8_t* b,
                                          int64_t chunk_stride, int64_t chunks, int64_t column, Ahead ahead,
                                          const Out& out) {
    constexpr int kQuads = kColumns[Planes] / 4, kSums = Pairs * 2 * kQuads;
    Sums<Planes, Pairs, 2 * kQuads> sums;
    if constexpr (Pairs == 3) {
      int32x4_t all[24];
      multiply_three_pairs<Planes>({a, b, ahead.from, pair_bytes, chunk_stride, chunks, ahead.step}, all);
      unroll<kSums>([&](auto i) __attribute__((always_inline)) {
        sums.high[i] = all[i];
        if constexpr (Planes == 2) sums.low[i] = all[kSums + i];
      });
    } else {
      sums.clear();
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        if (ahead.step != 0) __builtin_prefetch(ahead.from);
        ahead.from += ahead.step;
        sums.add(a, pair_bytes, b);
        sums.add(a + 16, pair_bytes, b + 128);
        a += 32 * Planes;
        b += chunk_stride;
      }
    }
    sums.put_rows(out, rows, column, chunks);
  }
};

}  // namespace

const IntKernels& i8mm_int_kernels() {
  static constexpr IntKernels kernels{
      "i8mm", {kChunk, 8, 2}, {kChunk, 8, kPanel}, multiply<I8mmTiles>, add<I8mmTiles>};
  return kernels;
}

}  // namespace sheaf

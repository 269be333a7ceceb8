#pragma once
#include "cpu/kernels/int_x86.h"

/// VPDPBUSD: four inputs of each column at once, unsigned rows × signed weights. Rows therefore lie as value
/// + 128 (`IntLayout::flip`), and 128 · Σ weights is taken off at the end; that sum is one more row of the
/// tile.
namespace sheaf {
namespace {

#if defined(__AVX512VNNI__)
constexpr int kMostRows[] = {0, 12, 8};  // of a tile, by planes: 12 sums, their correction, weights and a row
constexpr int kVectors[] = {0, 1, 1};    // of columns
[[gnu::always_inline]] inline Native add_products(Native sum, Native row, Native weights) {
  return _mm512_dpbusd_epi32(sum, row, weights);
}
#else
constexpr int kMostRows[] = {0, 4, 4};
constexpr int kVectors[] = {0, 2, 1};
[[gnu::always_inline]] inline Native add_products(Native sum, Native row, Native weights) {
  return _mm256_dpbusd_avx_epi32(sum, row, weights);
}
#endif

[[gnu::always_inline]] inline Ints dot(Ints sum, Ints row, Ints weights) {
  return reinterpret_cast<Ints>(add_products(reinterpret_cast<Native>(sum), reinterpret_cast<Native>(row),
                                             reinterpret_cast<Native>(weights)));
}

[[gnu::always_inline]] inline Ints load(const int8_t* from) {
  return *reinterpret_cast<const StoredInts*>(from);
}

[[gnu::always_inline]] inline Ints row_values(const int8_t* from) {
  int32_t four;
  __builtin_memcpy(&four, from, 4);
  return Ints{} + four;
}

struct VnniTiles {
  static constexpr int kTogether = 1;
  static constexpr int kMost[3] = {0, kMostRows[1], kMostRows[2]};
  static constexpr int kColumns[3] = {0, kVectors[1] * kLanes, kVectors[2] * kLanes};

  static constexpr int kColumnBytes = 4;

  template <int Planes, int Rows, class Out>
  [[gnu::always_inline]] static void tile(const int8_t* a, int64_t row_bytes, int64_t /*rows*/,
                                          const int8_t* b, int64_t chunk_stride, int64_t chunks,
                                          int64_t column, Ahead /*ahead*/, const Out& out) {
    constexpr int kVecs = kColumns[Planes] / kLanes;
    const Ints offset = Ints{} + static_cast<int32_t>(0x80808080);
    Ints high[Rows * kVecs], low[Planes == 2 ? Rows * kVecs : 1], high_sum[kVecs], low_sum[kVecs];
    unroll<Rows * kVecs>([&](auto i) __attribute__((always_inline)) {
      high[i] = Ints{};
      if constexpr (Planes == 2) low[i] = Ints{};
    });
    unroll<kVecs>([&](auto v) __attribute__((always_inline)) { high_sum[v] = low_sum[v] = Ints{}; });
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      // The planes of a chunk are 16 bytes apart in a row and 256 in a panel.
      unroll<4>([&](auto step) __attribute__((always_inline)) {
        Ints weights[kVecs], low_weights[kVecs];
        unroll<kVecs>([&](auto v) __attribute__((always_inline)) {
          weights[v] = load(b + 64 * step + v * int{sizeof(Ints)});
          high_sum[v] = dot(high_sum[v], offset, weights[v]);
          if constexpr (Planes == 2) {
            low_weights[v] = load(b + 256 + 64 * step + v * int{sizeof(Ints)});
            low_sum[v] = dot(low_sum[v], offset, low_weights[v]);
          }
        });
        unroll<Rows>([&](auto r) __attribute__((always_inline)) {
          const Ints row = row_values(a + r * row_bytes + 4 * step);
          unroll<kVecs>([&](auto v) __attribute__((always_inline)) {
            high[r * kVecs + v] = dot(high[r * kVecs + v], row, weights[v]);
          });
          if constexpr (Planes == 2) {
            const Ints low_row = row_values(a + r * row_bytes + 16 + 4 * step);
            unroll<kVecs>([&](auto v) __attribute__((always_inline)) {
              Ints& sum = low[r * kVecs + v];
              sum = dot(dot(sum, low_row, weights[v]), row, low_weights[v]);
            });
          }
        });
      });
      a += 16 * Planes;
      b += chunk_stride;
    }
    unroll<Rows>([&](auto r) __attribute__((always_inline)) {
      unroll<kVecs>([&](auto v) __attribute__((always_inline)) {
        const Ints whole = high[r * kVecs + v] - high_sum[v];
        Ints rest = whole;
        if constexpr (Planes == 2) rest = low[r * kVecs + v] - high_sum[v] - low_sum[v];
        put<Planes>(out, r, column + v * kLanes, whole, rest);
      });
    });
  }
};

}  // namespace
}  // namespace sheaf

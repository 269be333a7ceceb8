#pragma once
#include <immintrin.h>

#include "cpu/kernels/int_tiles.h"

/// VPDPBUSD: four inputs of each column at once, unsigned rows × signed weights. Rows therefore lie as value
/// + 128 (`row_flip`), and 128 · Σ weights is taken off at the end; that sum is one more row of the tile.
namespace sheaf {
namespace {

#if defined(__AVX512VNNI__)
using Ints = __m512i;
constexpr int kMostRows[] = {0, 12, 8};  // of a tile, by planes: 12 sums, their correction, weights and a row
constexpr int kVectors[] = {0, 1, 1};    // of columns
[[gnu::always_inline]] inline Ints zero() {
  return _mm512_setzero_si512();
}
[[gnu::always_inline]] inline Ints load(const int8_t* from) {
  return _mm512_loadu_si512(from);
}
[[gnu::always_inline]] inline Ints broadcast(int32_t four) {
  return _mm512_set1_epi32(four);
}
[[gnu::always_inline]] inline Ints dot(Ints sum, Ints row, Ints weights) {
  return _mm512_dpbusd_epi32(sum, row, weights);
}
[[gnu::always_inline]] inline Ints subtract(Ints a, Ints b) {
  return _mm512_sub_epi32(a, b);
}
[[gnu::always_inline]] inline __m512 times(__m512 a, float b) {
  return _mm512_mul_ps(a, _mm512_set1_ps(b));
}
[[gnu::always_inline]] inline __m512 plus(__m512 a, __m512 b) {
  return _mm512_add_ps(a, b);
}
[[gnu::always_inline]] inline void store_scaled(float* to, __m512 sum, const float* scales, float row_scale) {
  _mm512_storeu_ps(to, _mm512_mul_ps(sum, times(_mm512_loadu_ps(scales), row_scale)));
}
#else
using Ints = __m256i;
constexpr int kMostRows[] = {0, 4, 4};
constexpr int kVectors[] = {0, 2, 1};
[[gnu::always_inline]] inline Ints zero() {
  return _mm256_setzero_si256();
}
[[gnu::always_inline]] inline Ints load(const int8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
[[gnu::always_inline]] inline Ints broadcast(int32_t four) {
  return _mm256_set1_epi32(four);
}
[[gnu::always_inline]] inline Ints dot(Ints sum, Ints row, Ints weights) {
  return _mm256_dpbusd_avx_epi32(sum, row, weights);
}
[[gnu::always_inline]] inline Ints subtract(Ints a, Ints b) {
  return _mm256_sub_epi32(a, b);
}
[[gnu::always_inline]] inline __m256 times(__m256 a, float b) {
  return _mm256_mul_ps(a, _mm256_set1_ps(b));
}
[[gnu::always_inline]] inline __m256 plus(__m256 a, __m256 b) {
  return _mm256_add_ps(a, b);
}
[[gnu::always_inline]] inline void store_scaled(float* to, __m256 sum, const float* scales, float row_scale) {
  _mm256_storeu_ps(to, _mm256_mul_ps(sum, times(_mm256_loadu_ps(scales), row_scale)));
}
#endif

constexpr int kLanes = sizeof(Ints) / 4;  // columns of a vector
using IntLanes __attribute__((vector_size(sizeof(Ints)))) = int32_t;
using FloatLanes __attribute__((vector_size(sizeof(Ints)))) = float;

/// g++ 12 warns of its own header where the intrinsic is used.
[[gnu::always_inline]] inline FloatLanes to_float(Ints a) {
  return __builtin_convertvector(reinterpret_cast<IntLanes>(a), FloatLanes);
}

[[gnu::always_inline]] inline Ints row_values(const int8_t* from) {
  int32_t four;
  __builtin_memcpy(&four, from, 4);
  return broadcast(four);
}

struct VnniTiles {
  static constexpr int kTogether = 1;
  static constexpr int kMost[] = {0, kMostRows[1], kMostRows[2]};
  static constexpr int kColumns[] = {0, kVectors[1] * kLanes, kVectors[2] * kLanes};

  template <int Planes, int Rows>
  [[gnu::always_inline]] static void tile(const int8_t* a, int64_t row_bytes, const float* row_scales,
                                          int64_t /*rows*/, const int8_t* b, int64_t first_column,
                                          const float* column_scales, int64_t chunks, float* c,
                                          int64_t c_stride) {
    b += 4 * first_column;
    constexpr int kVecs = kColumns[Planes] / kLanes;
    const Ints offset = broadcast(static_cast<int32_t>(0x80808080));
    Ints high[Rows * kVecs], low[Planes == 2 ? Rows * kVecs : 1], high_sum[kVecs], low_sum[kVecs];
    unroll<Rows * kVecs>([&](auto i) __attribute__((always_inline)) {
      high[i] = zero();
      if constexpr (Planes == 2) low[i] = zero();
    });
    unroll<kVecs>([&](auto v) __attribute__((always_inline)) { high_sum[v] = low_sum[v] = zero(); });
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
      b += 256 * Planes;
    }
    unroll<Rows>([&](auto r) __attribute__((always_inline)) {
      unroll<kVecs>([&](auto v) __attribute__((always_inline)) {
        auto sum = to_float(subtract(high[r * kVecs + v], high_sum[v]));
        if constexpr (Planes == 2) {
          const Ints rest = subtract(subtract(low[r * kVecs + v], high_sum[v]), low_sum[v]);
          sum = times(plus(times(sum, 256.0f), to_float(rest)), 256.0f);
        }
        store_scaled(c + r * c_stride + v * kLanes, sum, column_scales + v * kLanes, row_scales[r]);
      });
    });
  }
};

}  // namespace
}  // namespace sheaf

#include <cstddef>
#include <immintrin.h>

#include "cpu/kernels/int_tiles.h"

/// AVX2 has no exact product of bytes (VPMADDUBSW saturates), so rows and weights are widened to 16 bits and
/// multiplied in pairs (VPMADDWD). A tile of 3 rows × 16 columns holds 12 sums, each of two halves that are
/// added at the end. Widening the weights costs a third of an instruction a product, hence about 1.3 times
/// the rate of fp32, from a quarter of the bytes.
namespace sheaf {
namespace {

/// The four columns of a quad are eight sums, two for each column.
[[gnu::always_inline]] inline __m128i add_halves(__m256i sums) {
  const __m256i added = _mm256_hadd_epi32(sums, sums);  // c0 c1 c0 c1 | c2 c3 c2 c3
  return _mm_unpacklo_epi64(_mm256_castsi256_si128(added), _mm256_extracti128_si256(added, 1));
}

[[gnu::always_inline]] inline __m256i row_values(const int8_t* from) {
  int32_t four;
  __builtin_memcpy(&four, from, 4);
  return _mm256_cvtepi8_epi16(_mm_set1_epi32(four));
}

template <int Planes>
[[gnu::always_inline]] inline void put(const Scaled& out, int64_t row, int64_t column, __m128i high,
                                       __m128i low) {
  __m128 sum = _mm_cvtepi32_ps(high);
  if constexpr (Planes == 2) sum = _mm_add_ps(_mm_mul_ps(sum, _mm_set1_ps(256.0f)), _mm_cvtepi32_ps(low));
  const float row_scale = out.row_scales[row] * (Planes == 2 ? 256.0f : 1.0f);
  const __m128 scales = _mm_mul_ps(_mm_loadu_ps(out.column_scales + column), _mm_set1_ps(row_scale));
  _mm_storeu_ps(out.c[row] + column, _mm_mul_ps(sum, scales));
}

template <int Planes>
[[gnu::always_inline]] inline void put(const Added& out, int64_t row, int64_t column, __m128i high,
                                       __m128i low) {
  const auto add_to = [&](int plane, __m128i sums) __attribute__((always_inline)) {
    auto* to = reinterpret_cast<__m128i*>(out.sums[row] + Added::place(column, plane));
    _mm_storeu_si128(to, _mm_add_epi32(_mm_loadu_si128(to), sums));
  };
  add_to(0, high);
  add_to(1, low);
}

struct Avx2Tiles {
  static constexpr int kTogether = 1;
  static constexpr int kMost[] = {0, 3, 3};
  static constexpr int kColumns[] = {0, 16, 8};

  static constexpr int kColumnBytes = 4;

  template <int Planes, int Rows, class Out>
  [[gnu::always_inline]] static void tile(const int8_t* a, int64_t row_bytes, int64_t /*rows*/,
                                          const int8_t* b, int64_t chunk_stride, int64_t chunks,
                                          int64_t column, Ahead /*ahead*/, const Out& out) {
    constexpr int kQuads = kColumns[Planes] / 4;
    __m256i high[Rows * kQuads], low[Planes == 2 ? Rows * kQuads : 1] = {};
    unroll<Rows * kQuads>([&](auto i) __attribute__((always_inline)) {
      high[i] = _mm256_setzero_si256();
      if constexpr (Planes == 2) low[i] = _mm256_setzero_si256();
    });
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      // The planes of a chunk are 16 bytes apart in a row and 256 in a panel.
      const auto add = [&](int row_plane, int weight_plane, __m256i* sums) __attribute__((always_inline)) {
        unroll<4>([&](auto step) __attribute__((always_inline)) {
          __m256i rows[Rows];
          unroll<Rows>([&](auto r) __attribute__((always_inline)) {
            rows[r] = row_values(a + r * row_bytes + 16 * row_plane + 4 * step);
          });
          unroll<kQuads>([&](auto q) __attribute__((always_inline)) {
            const __m256i weights = _mm256_cvtepi8_epi16(_mm_loadu_si128(
                reinterpret_cast<const __m128i*>(b + 256 * weight_plane + 64 * step + 16 * q)));
            unroll<Rows>([&](auto r) __attribute__((always_inline)) {
              __m256i& sum = sums[r * kQuads + q];
              sum = _mm256_add_epi32(sum, _mm256_madd_epi16(rows[r], weights));
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
      b += chunk_stride;
    }
    unroll<Rows>([&](auto r) __attribute__((always_inline)) {
      unroll<kQuads>([&](auto q) __attribute__((always_inline)) {
        put<Planes>(out, r, column + 4 * q, add_halves(high[r * kQuads + q]),
                    add_halves(low[Planes == 2 ? r * kQuads + q : 0]));
      });
    });
  }
};

}  // namespace

const IntKernels& avx2_int_kernels() {
  static constexpr IntKernels kernels{
      "AVX2", {kChunk, 4, 1}, {kChunk, 4, kPanel}, multiply<Avx2Tiles>, add<Avx2Tiles>};
  return kernels;
}

}  // namespace sheaf

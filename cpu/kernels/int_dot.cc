#include <arm_neon.h>

#include "cpu/kernels/int_neon.h"

/// SDOT: four columns over four inputs of one row, 32 operations, two a cycle on a Neoverse-N1. A tile of 5
/// rows × 16 columns (one plane) or 5 × 8 (two) holds its 20 sums in registers over the whole depth.
namespace sheaf {
namespace {

struct DotTiles {
  static constexpr int kTogether = 1;
  static constexpr int kMost[] = {0, 5, 5};
  static constexpr int kColumns[] = {0, 16, 8};

  static constexpr int kColumnBytes = 4;

  template <int Planes, int Rows, class Out>
  [[gnu::always_inline]] static void tile(const int8_t* a, int64_t row_bytes, int64_t /*rows*/,
                                          const int8_t* b, int64_t chunk_stride, int64_t chunks,
                                          int64_t column, Ahead /*ahead*/, const Out& out) {
    constexpr int kQuads = kColumns[Planes] / 4;
    int32x4_t high[Rows * kQuads];
    int32x4_t low[Planes == 2 ? Rows * kQuads : 1] = {};
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
      b += chunk_stride;
    }
    unroll<Rows>([&](auto r) __attribute__((always_inline)) {
      unroll<kQuads>([&](auto q) __attribute__((always_inline)) {
        put<Planes>(out, r, column + 4 * q, high[r * kQuads + q], low[Planes == 2 ? r * kQuads + q : 0]);
      });
    });
  }
};

}  // namespace

const IntKernels& dot_int_kernels() {
  static constexpr IntKernels kernels{
      "dot product", {kChunk, 4, 1}, {kChunk, 4, kPanel}, multiply<DotTiles>, add<DotTiles>};
  return kernels;
}

}  // namespace sheaf

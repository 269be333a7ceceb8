#pragma once
#include "cpu/kernels/int_tiles.h"

namespace sheaf {
namespace {

/// A tile that holds its sums in registers over the whole depth, four columns of a row in each. `Quads` names
/// its types, and says how four inputs of a row and of four columns are read, multiplied and added; put()
/// takes what `finish` makes of a sum.
template <class Quads>
struct QuadTiles {
  using Sum = typename Quads::Sum;

  static constexpr int kTogether = 1;
  static constexpr int kMost[3] = {0, Quads::kRows, Quads::kRows};
  static constexpr int kColumns[3] = {0, 16, 8};

  static constexpr int kColumnBytes = 4;

  template <int Planes, int Rows, class Out>
  [[gnu::always_inline]] static void tile(const int8_t* a, int64_t row_bytes, int64_t /*rows*/,
                                          const int8_t* b, int64_t chunk_stride, int64_t chunks,
                                          int64_t column, Ahead /*ahead*/, const Out& out) {
    constexpr int kQuads = kColumns[Planes] / 4;
    Sum high[Rows * kQuads], low[Planes == 2 ? Rows * kQuads : 1] = {};
    unroll<Rows * kQuads>([&](auto i) __attribute__((always_inline)) {
      high[i] = Sum{};
      if constexpr (Planes == 2) low[i] = Sum{};
    });
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      // The planes of a chunk are 16 bytes apart in a row and 256 in a panel.
      const auto add = [&](int row_plane, int weight_plane, Sum* sums) __attribute__((always_inline)) {
        unroll<4>([&](auto step) __attribute__((always_inline)) {
          typename Quads::Row rows[Rows];
          unroll<Rows>([&](auto r) __attribute__((always_inline)) {
            rows[r] = Quads::row(a + r * row_bytes + 16 * row_plane, step);
          });
          unroll<kQuads>([&](auto q) __attribute__((always_inline)) {
            const auto weights = Quads::weights(b + 256 * weight_plane + 64 * step + 16 * q);
            unroll<Rows>([&](auto r) __attribute__((always_inline)) {
              Quads::add(sums[r * kQuads + q], rows[r], weights, step);
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
        put<Planes>(out, r, column + 4 * q, Quads::finish(high[r * kQuads + q]),
                    Quads::finish(low[Planes == 2 ? r * kQuads + q : 0]));
      });
    });
  }
};

}  // namespace
}  // namespace sheaf

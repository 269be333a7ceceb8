#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "cpu/kernels/int_kernels.h"
#include "cpu/kernels/unroll.h"

/// The loops around the tiles of one instruction set. Tiles says
///   kTogether                  rows that lie together, a group
///   kMost[planes]              groups of a tile at most, so that its sums fit the registers
///   kColumns[planes]           columns of a tile
///   kColumnBytes               from a column of a panel to the next
///   tile<Planes, Groups, Out>  multiplies a tile over the whole depth and hands the sums of its rows to Out
namespace sheaf {
namespace {

constexpr int64_t kChunk = 16;
constexpr int64_t kLine = 64;  // of a cache, in bytes

/// Where the sums of a tile go: as floats with their scales, or added to sums in memory.
struct Scaled {
  const float* row_scales;
  const float* column_scales;
  float* const* c;

  [[gnu::always_inline]] Scaled at(int64_t row) const { return {row_scales + row, column_scales, c + row}; }
};
struct Added {
  int32_t* const* sums;

  [[gnu::always_inline]] Added at(int64_t row) const { return {sums + row}; }
  /// Of column `column` and the plane: high 0, low 1.
  [[gnu::always_inline]] static int64_t place(int64_t column, int plane) {
    return column / kPanel * 2 * kPanel + plane * kPanel + column % kPanel;
  }
};

/// What a tile fetches while it multiplies, `step` bytes further with each chunk: the n-th tile of a panel
/// the n-th part of the next panel.
struct Ahead {
  const int8_t* from;
  int64_t step;
};

/// Rows [first, end) in tiles of Groups groups times a panel.
template <class Tiles, int Planes, int Groups, class Out>
void multiply_tiles(const IntFactors& factors, int64_t panel, int64_t first, int64_t end, Ahead ahead,
                    const Out& out) {
  constexpr int64_t kRows = int64_t{Groups} * Tiles::kTogether;
  const int64_t row_bytes = factors.chunks * kChunk * Planes;
  const int8_t* b = factors.b + panel * factors.panel_stride;
  for (int64_t row = first; row < end; row += kRows)
    for (int64_t part = 0; part < kPanel;
         part += Tiles::kColumns[Planes], ahead.from += factors.chunks * ahead.step)
      Tiles::template tile<Planes, Groups>(factors.a + row * row_bytes, row_bytes * Tiles::kTogether,
                                           factors.rows - row, b + part * Tiles::kColumnBytes,
                                           factors.chunk_stride, factors.chunks, panel * kPanel + part, ahead,
                                           out.at(row));
}

template <class Tiles, int Planes, class Out>
void multiply_planes(const IntFactors& factors, const Out& out) {
  constexpr int kMost = Tiles::kMost[Planes];
  using Multiply = decltype(&multiply_tiles<Tiles, Planes, 1, Out>);
  constexpr auto kMultiply = []<int... I>(std::integer_sequence<int, I...>) {
    return std::array<Multiply, kMost>{multiply_tiles<Tiles, Planes, I + 1, Out>...};
  }
  (std::make_integer_sequence<int, kMost>{});
  // Tiles as even as can be: 6 groups are 3 + 3, never 5 + 1.
  const int64_t groups = (factors.rows + Tiles::kTogether - 1) / Tiles::kTogether;
  const int64_t count = (groups + kMost - 1) / kMost;
  const int64_t small = groups / count;
  const int64_t larger = groups % count;
  const int64_t middle = larger * (small + 1) * Tiles::kTogether, end = groups * Tiles::kTogether;
  // Few tiles wait for the weights themselves; fetching far ahead of a stream would halve its rate.
  const bool fetch = count >= 4;
  const int64_t step = fetch ? std::min(kLine, factors.panel_stride / (factors.chunks * count)) : 0;
  // A panel stays in the first cache while all rows pass over it.
  for (int64_t panel = 0; panel < factors.panels; ++panel) {
    Ahead ahead{factors.b + (panel + (fetch ? 1 : 0)) * factors.panel_stride, step};
    if (larger > 0) kMultiply[static_cast<size_t>(small)](factors, panel, 0, middle, ahead, out);
    ahead.from += larger * factors.chunks * step;
    kMultiply[static_cast<size_t>(small - 1)](factors, panel, middle, end, ahead, out);
  }
}

template <class Tiles>
void multiply(const IntFactors& factors, const float* row_scales, const float* column_scales,
              float* const* c) {
  if (factors.rows == 0) return;
  const auto run =
      factors.planes == 1 ? multiply_planes<Tiles, 1, Scaled> : multiply_planes<Tiles, 2, Scaled>;
  run(factors, {row_scales, column_scales, c});
}

template <class Tiles>
void add(const IntFactors& factors, int32_t* const* sums) {
  if (factors.rows > 0) multiply_planes<Tiles, 2, Added>(factors, {sums});
}

}  // namespace
}  // namespace sheaf

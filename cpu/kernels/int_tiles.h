#pragma once
#include <array>
#include <cstddef>
#include <utility>

#include "cpu/kernels/int_kernels.h"
#include "cpu/kernels/unroll.h"

/// The loops around the tiles of one instruction set. Tiles says
///   kTogether             rows that lie together, a group
///   kMost[planes]         groups of a tile at most, so that its sums fit the registers
///   kColumns[planes]      columns of a tile
///   tile<Planes, Groups>  multiplies a tile over the whole depth and stores its first `rows` rows
namespace sheaf {
namespace {

/// `count` times Groups groups; a panel stays in the first cache while all of them pass over it.
template <class Tiles, int Planes, int Groups>
void multiply_tiles(const int8_t* a, const float* row_scales, int64_t count, int64_t rows, const int8_t* b,
                    const float* column_scales, int64_t panels, int64_t chunks, float* c, int64_t c_stride) {
  constexpr int64_t kRows = int64_t{Groups} * Tiles::kTogether;
  const int64_t row_bytes = chunks * IntKernels::kChunk * Planes;
  for (int64_t panel = 0; panel < panels; ++panel)
    for (int64_t row = 0; row < count * kRows; row += kRows)
      for (int64_t part = 0; part < kPanel; part += Tiles::kColumns[Planes]) {
        const int64_t column = panel * kPanel + part;
        Tiles::template tile<Planes, Groups>(a + row * row_bytes, row_bytes * Tiles::kTogether,
                                             row_scales + row, rows - row, b + panel * kPanel * row_bytes,
                                             part, column_scales + column, chunks,
                                             c + row * c_stride + column, c_stride);
      }
}

template <class Tiles, int Planes>
void multiply_planes(const int8_t* a, const float* row_scales, int64_t rows, const int8_t* b,
                     const float* column_scales, int64_t panels, int64_t chunks, float* c, int64_t c_stride) {
  constexpr int kMost = Tiles::kMost[Planes];
  using Multiply = decltype(&multiply_tiles<Tiles, Planes, 1>);
  constexpr auto kMultiply = []<int... I>(std::integer_sequence<int, I...>) {
    return std::array<Multiply, kMost>{multiply_tiles<Tiles, Planes, I + 1>...};
  }
  (std::make_integer_sequence<int, kMost>{});
  // Tiles as even as can be: 6 groups are 3 + 3, never 5 + 1.
  const int64_t groups = (rows + Tiles::kTogether - 1) / Tiles::kTogether;
  const int64_t count = (groups + kMost - 1) / kMost;
  const int64_t small = groups / count;
  const int64_t larger = groups % count;
  if (larger > 0)
    kMultiply[static_cast<size_t>(small)](a, row_scales, larger, rows, b, column_scales, panels, chunks, c,
                                          c_stride);
  const int64_t done = larger * (small + 1) * Tiles::kTogether;
  kMultiply[static_cast<size_t>(small - 1)](a + done * chunks * IntKernels::kChunk * Planes,
                                            row_scales + done, count - larger, rows - done, b, column_scales,
                                            panels, chunks, c + done * c_stride, c_stride);
}

template <class Tiles>
void multiply(const int8_t* a, const float* row_scales, int64_t rows, const int8_t* b,
              const float* column_scales, int64_t panels, int64_t chunks, int planes, float* c,
              int64_t c_stride) {
  if (rows == 0) return;
  const auto run = planes == 1 ? multiply_planes<Tiles, 1> : multiply_planes<Tiles, 2>;
  run(a, row_scales, rows, b, column_scales, panels, chunks, c, c_stride);
}

}  // namespace
}  // namespace sheaf

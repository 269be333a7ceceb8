#pragma once
// The tiles of products of experts. Which there are follows from offsets that only the device knows.
#include <cstdint>

namespace sheaf::cuda {
namespace {

/// A part of the results: rows [first_row, first_row + height) of the gathered ones, all of one expert.
struct Tile {
  int expert, first_row, height, first_col;  ///< height 0: there is none
};

#if defined(__CUDA_ARCH__)
/// begins[e] = the tiles of kTileRows rows, one above the other, of the experts before e; begins[experts] =
/// the tiles of all experts. The whole block takes part; each of its threads counts two experts.
template <int kTileRows>
__device__ void count_tiles(const int32_t* offsets, int experts, int* begins) {
  __shared__ int sums[32];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const auto tiles_of = [&](int expert) {
    return expert >= experts ? 0 : (offsets[expert + 1] - offsets[expert] + kTileRows - 1) / kTileRows;
  };
  const int first = 2 * thread, own = tiles_of(first), sum = own + tiles_of(first + 1);
  int up_to = sum;  // of the warp's threads up to this one
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, up_to, offset);
    if (lane >= offset) up_to += other;
  }
  if (lane == 31) sums[warp] = up_to;
  __syncthreads();
  int before = up_to - sum;
  for (int i = 0; i < warp; ++i) before += sums[i];
  if (first < experts) begins[first] = before;
  if (first + 1 < experts) begins[first + 1] = before + own;
  if (first < experts && first + 2 >= experts) begins[experts] = before + sum;
  __syncthreads();
}

struct TileList {
  const int32_t* offsets;  ///< [experts + 1]
  const int* begins;       ///< [experts + 1], of count_tiles()
  int experts, across;

  /// Tile `index`: an expert's tiles follow one another column by column, so that those computed at once
  /// share their weights.
  template <int kTileRows, int kTileCols>
  __device__ Tile at(int index) const {
    if (index >= begins[experts] * across) return {0, 0, 0, 0};
    int low = 0, high = experts;  // the last expert whose tiles begin at or before the index
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (begins[middle] * across <= index ? low : high) = middle;
    }
    const int down = begins[low + 1] - begins[low], inside = index - begins[low] * across;
    const int first_row = offsets[low] + inside % down * kTileRows;
    return {low, first_row, min(kTileRows, offsets[low + 1] - first_row), inside / down * kTileCols};
  }
};
#endif

}  // namespace
}  // namespace sheaf::cuda

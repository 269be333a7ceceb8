#pragma once
// A tile of a matrix product on Hopper: its size, its shared memory, and what a block knows of its work.
#include <type_traits>

#include "cuda/base/hopper.h"
#include "cuda/gemm/gemm.h"

namespace sheaf::cuda {
namespace {

constexpr int kRows = 128, kCols = 256;    // of a tile
constexpr int kLine = 128;                 // bytes of a stage's rows
constexpr int kHeadLine = kCols * 2 + 16;  // bytes of a row of heads; 16 more spread rows over the banks
template <class Element>
constexpr int kDepth = kLine / static_cast<int>(sizeof(Element));  // summed columns of a stage
template <class Element>
constexpr bool kScaled = std::is_same_v<Element, e4m3>;
static_assert(kCols / 2 == kFp8Block, "gated values of a tile share a scale");

template <class Element, Epilogue epilogue>
struct Shared {
  /// Columns of a tile that leave, and as what.
  static constexpr int kOut = epilogue == Epilogue::swiglu ? kCols / 2 : kCols;
  using Out = std::conditional_t<epilogue == Epilogue::add, float,
                                 std::conditional_t<epilogue == Epilogue::swiglu, Element, bf16>>;
  /// Blocks of 64 rows and one line that a warpgroup has in shared memory on their way out.
  static constexpr int kOutBlocks = epilogue == Epilogue::add ? 2
                                    : epilogue == Epilogue::store || epilogue == Epilogue::swiglu
                                        ? kOut / kDepth<Out>
                                        : 0;
  static constexpr bool kHeads = epilogue == Epilogue::heads;
  static constexpr int kStages = epilogue == Epilogue::store || kHeads ? 3 : 4;
  alignas(1024) uint8_t in[kStages][kRows][kLine];
  alignas(1024) uint8_t weight[kStages][kCols][kLine];
  alignas(
      1024) uint8_t out[2][kOutBlocks > 0 ? kOutBlocks : 1][kOutBlocks > 0 ? 64 : 1][kLine];  // by warpgroup
  alignas(16) uint8_t heads[kHeads ? 8 : 1][kHeads ? 16 : 1][kHeads ? kHeadLine : 16];  // by warp, likewise
  float norms[2][kHeads ? 128 : 1];  // weights of the queries' and the keys' norm
  alignas(16) float weight_scales[kScaled<Element> ? kCols : 4];  // of the tile that ends next
  uint64_t full[kStages], empty[kStages], scales_read;
};

/// What e4m3 values are multiplied by.
struct Scales {
  const float* in;      ///< [m]
  const float* weight;  ///< [n]
  float* out;           ///< [m, tiles across] where the epilogue is swiglu
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr int kTogether = 8;  // cluster rows whose tiles are computed side by side

/// Tiles in an order that keeps those computed side by side close to a square.
struct TileOrder {
  int clusters_down, tiles_across;
  __device__ int count() const { return clusters_down * tiles_across; }
  __device__ int2 at(int index) const {
    const int group = index / (kTogether * tiles_across);
    const int first = group * kTogether;
    const int height = min(kTogether, clusters_down - first);
    const int inside = index - first * tiles_across;
    return make_int2(first + inside % height, inside / height);
  }
};

/// What a block has to do.
struct BlockWork {
  float* out;  ///< [m, n], where the epilogue is add or store_floats
  int m, n;
  int stages;  ///< of kDepth summed columns each
  Scales scales;
  TileOrder order;
  uint32_t rank;  ///< of the block in its cluster
};
#endif

}  // namespace
}  // namespace sheaf::cuda

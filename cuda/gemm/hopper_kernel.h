// Matrix products with what follows them, on Hopper. Two blocks of a cluster take two tiles of 128 rows and
// the same 256 columns: each brings half of the weight's tile for both. In a block one thread keeps the ring
// of stages full; two warpgroups compute 64 × 256 each. Blocks stay and take tile after tile, so the next
// tile's stages are filled while this one's results leave.
//
// Bytes: a stage of 64 summed columns is 16 kB of input and 16 kB of weight a block for 4.2 MFLOP, so 5.5
// TB/s from L2 at 700 TFLOP/s. In e4m3 it is 128 columns for twice the FLOP, at twice the speed.
//
// Sums of e4m3 products stay in the matrix unit, which keeps about 14 bits of them: what that costs is small
// beside the rounding of the values (docs/performance.md).
#pragma once
#include <stdexcept>

#include "cuda/base/launch.h"
#include "cuda/gemm/hopper_heads.h"

namespace sheaf::cuda {
namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
template <class Element>
__device__ void multiply_line(float (&sum)[kCols / 2], uint64_t a, uint64_t b, bool add) {
#pragma unroll
  for (int step = 0; step < kLine / 32; ++step) {
    if constexpr (kScaled<Element>)
      multiply_tiles_fp8(sum, a + step * 2, b + step * 2, add || step != 0);
    else
      multiply_tiles(sum, a + step * 2, b + step * 2, add || step != 0);
  }
}

/// A warpgroup: tile after tile, the sums over all stages, then the epilogue.
template <class Element, Epilogue epilogue>
__device__ void compute(Shared<Element, epilogue>& memory, const CUtensorMap* out_map,
                        const HeadTargets& targets, const BlockWork& work, int group) {
  using Memory = Shared<Element, epilogue>;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  int at = 0;
  uint32_t round = 0;
  int held = -1;  // the stage whose products may still be running
  auto give_back = [&] {
    if (held >= 0 && lane < 2) barrier_arrive_at(&memory.empty[held], static_cast<uint32_t>(lane));
  };
  for (int tile = blockIdx.x / 2; tile < work.order.count(); tile += gridDim.x / 2) {
    float sum[kCols / 2];
    const auto multiply_stage = [&](int stage) {
      barrier_wait(&memory.full[at], round);
      const uint64_t a = tile_descriptor(&memory.in[at][group * 64][0], 16);
      const uint64_t b = tile_descriptor(&memory.weight[at][0][0], 16);
      pin(sum);
      products_begin();
      multiply_line<Element>(sum, a, b, stage != 0);
      products_commit();
      products_wait<1>();
      pin(sum);
      give_back();
      held = at;
      if (++at == Memory::kStages) {
        at = 0;
        round ^= 1;
      }
    };
    // What the heads' epilogue reads is on its way while the last stages are multiplied.
    constexpr int kLast = epilogue == Epilogue::heads ? 4 : 0;
    for (int stage = 0; stage < work.stages - kLast; ++stage) multiply_stage(stage);
    const auto multiply_last = [&] {
      for (int stage = max(0, work.stages - kLast); stage < work.stages; ++stage) multiply_stage(stage);
    };
    const int2 at_tile = work.order.at(tile);
    const int first_row = (at_tile.x * 2 + static_cast<int>(work.rank)) * kRows + group * 64;
    float2 by_row{};
    if constexpr (kScaled<Element>) {
      const int row = first_row + warp * 16 + lane / 4;
      by_row.x = row < work.m ? work.scales.in[row] : 0;
      by_row.y = row + 8 < work.m ? work.scales.in[row + 8] : 0;
    }
    const auto end_products = [&] {
      products_wait<0>();
      pin(sum);
      give_back();
      held = -1;
      if constexpr (kScaled<Element>) {
        scale_sums(sum, by_row, memory.weight_scales, lane);
        __syncwarp();
        if (lane == 0) barrier_arrive(&memory.scales_read);
      }
    };
    if constexpr (epilogue == Epilogue::heads) {
      const int row = first_row + warp * 16;
      const auto place_all = [&](auto turn, int first_head) {
        turn.load(targets, row + lane / 4, lane, work.m);
        auto second = turn;
        second.load(targets, row + 8 + lane / 4, lane, work.m);
        const int32_t slot = targets.kv_slots[min(row + lane % 16, work.m - 1)];
        multiply_last();
        end_products();
        turn_row(targets, memory.norms, sum, turn, first_head, 0, lane);
        turn_row(targets, memory.norms, sum, second, first_head, 1, lane);
        constexpr int D = 16 * decltype(turn)::kHalf;
        auto* buffer = memory.heads[group * 4 + warp];
        if (targets.q8)
          send_narrow_heads<D>(targets, sum, buffer, first_head, row, slot, lane, work.m);
        else
          send_heads<D>(targets, sum, buffer, first_head, row, slot, lane, work.m);
      };
      if (targets.layout.head_dim == 128)
        place_all(Turn<128>{}, at_tile.y * 2);
      else
        place_all(Turn<64>{}, at_tile.y * 4);
    } else if constexpr (epilogue == Epilogue::add) {
      end_products();
      add_sums(memory, out_map, sum, work, first_row, at_tile.y * kCols, group, warp, lane);
    } else if constexpr (epilogue == Epilogue::store_floats) {
      end_products();
      write_floats(work, sum, first_row, at_tile.y * kCols, warp, lane);
    } else {
      end_products();
      store_sums<Memory, epilogue>(memory, out_map, sum, work, first_row, at_tile.y, group, warp, lane);
    }
  }
  if (lane == 0) stores_wait();
}

/// One thread: keeps the ring of stages full.
template <class Element, Epilogue epilogue>
__device__ void bring(Shared<Element, epilogue>& memory, const CUtensorMap* in_map,
                      const CUtensorMap* weight_map, const BlockWork& work) {
  using Memory = Shared<Element, epilogue>;
  int at = 0;
  uint32_t round = 0, tiles = 0;
  for (int tile = blockIdx.x / 2; tile < work.order.count(); tile += gridDim.x / 2, ++tiles) {
    const int2 place = work.order.at(tile);
    const int row = (place.x * 2 + static_cast<int>(work.rank)) * kRows;
    const int col = place.y * kCols + static_cast<int>(work.rank) * (kCols / 2);
    for (int stage = 0; stage < work.stages; ++stage) {
      barrier_wait(&memory.empty[at], round ^ 1);
      // The weight's scales come with the last stage: those of the tile before are read by then.
      const bool with_scales = kScaled<Element> && stage == work.stages - 1;
      const auto scale_bytes = static_cast<uint32_t>(min(kCols, work.n - place.y * kCols) * sizeof(float));
      if (with_scales) barrier_wait(&memory.scales_read, (tiles & 1) ^ 1);
      barrier_expect(&memory.full[at], (kRows + kCols) * kLine + (with_scales ? scale_bytes : 0));
      if (with_scales)
        copy_bytes(memory.weight_scales, work.scales.weight + place.y * kCols, scale_bytes, &memory.full[at]);
      copy_box(&memory.in[at][0][0], in_map, stage * kDepth<Element>, row, &memory.full[at]);
      copy_box_to_all(&memory.weight[at][work.rank * (kCols / 2)][0], weight_map, stage * kDepth<Element>,
                      col, &memory.full[at], 3);
      if (++at == Memory::kStages) {
        at = 0;
        round ^= 1;
      }
    }
  }
}
#endif

// GPUs before Hopper have no clusters, and nothing of this kernel.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define SHEAF_PAIR_OF_BLOCKS
#else
#define SHEAF_PAIR_OF_BLOCKS __cluster_dims__(2)
#endif

/// `in_map`: in [m, k]; `weight_map`: weight [n, k]; `out_map`: out as bf16 [m, n], or as Element [m, n / 2]
/// where the epilogue is gated; `out` [m, n], where it is add or store_floats; `targets`, where it is heads.
template <class Element, Epilogue epilogue>
__global__ SHEAF_PAIR_OF_BLOCKS __launch_bounds__(384, 1) void multiply_kernel(
    const __grid_constant__ CUtensorMap in_map, const __grid_constant__ CUtensorMap weight_map,
    const __grid_constant__ CUtensorMap out_map, float* out, int m, int n, int k,
    const __grid_constant__ Scales scales, const __grid_constant__ HeadTargets targets) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Memory = Shared<Element, epilogue>;
  extern __shared__ uint8_t bytes[];
  Memory& memory = aligned_shared<Memory>(bytes);
  const BlockWork work{out,
                       m,
                       n,
                       (k + kDepth<Element> - 1) / kDepth<Element>,
                       scales,
                       {(m + 2 * kRows - 1) / (2 * kRows), (n + kCols - 1) / kCols},
                       cluster_rank()};
  if (threadIdx.x == 0) {
    for (int i = 0; i < Memory::kStages; ++i) {
      barrier_init(&memory.full[i], 1);
      barrier_init(&memory.empty[i], 16);  // every computing warp of both blocks
    }
    barrier_init(&memory.scales_read, 8);
    fence_barrier_init();
  }
  if constexpr (epilogue == Epilogue::heads) {
    const int at = static_cast<int>(threadIdx.x);
    if (targets.layout.norm != 0 && at < targets.layout.head_dim) {
      memory.norms[0][at] = targets.q_norm[at];
      memory.norms[1][at] = targets.k_norm[at];
    }
  }
  cluster_sync();
  const int warpgroup = this_warpgroup();
  if (warpgroup == 0) {
    keep_registers<40>();
    if (threadIdx.x == 0) bring(memory, &in_map, &weight_map, work);
  } else {
    take_registers<232>();
    compute(memory, &out_map, targets, work, warpgroup - 1);
  }
  // The other block may still write here and arrive here.
  cluster_sync();
#endif
}

template <class Element>
struct Product {
  const Element* in;      ///< [m, k]
  const Element* weight;  ///< [n, k]
  int64_t m, n, k;
  void* out;  ///< as the epilogue says, or null where it is heads
  Scales scales;
  HeadTargets targets;
};

template <class Element, Epilogue epilogue>
bool launch(const Product<Element>& product, int multiprocessors, cudaStream_t stream) {
  using Memory = Shared<Element, epilogue>;
  const auto [in, weight, m, n, k, out, scales, targets] = product;
  const CUtensorMap in_map = matrix_map(in, m, k, kRows), weight_map = matrix_map(weight, n, k, kCols / 2);
  CUtensorMap out_map{};
  if (Memory::kOutBlocks > 0)
    out_map = matrix_map(static_cast<const typename Memory::Out*>(out), m, is_gated(epilogue) ? n / 2 : n,
                         epilogue == Epilogue::add ? 16 : 64);
  const auto kernel = multiply_kernel<Element, epilogue>;
  constexpr int shared = static_cast<int>(sizeof(Memory)) + 1024;
  static_assert(shared <= 232448, "a Hopper block's shared memory");
  static PerDevice<cudaError_t> ready;
  if (!allow_shared(kernel, shared, ready)) throw std::runtime_error("CUDA: no shared memory for a product");
  kernel<<<multiprocessors / 2 * 2, 384, shared, stream>>>(
      in_map, weight_map, out_map, static_cast<float*>(out), static_cast<int>(m), static_cast<int>(n),
      static_cast<int>(k), scales, targets);
  return true;
}

/// 0 where the kernel cannot run or the sizes are not for it: rows of the tensors are multiples of 16 bytes.
template <class Element>
int multiprocessors_for(int64_t n, int64_t k) {
  static PerDevice<int> multiprocessors;
  if (k * sizeof(Element) % 16 != 0 || n % 8 != 0) return 0;
  return multiprocessors.get(
      [] { return hopper_multiprocessors(multiply_kernel<Element, Epilogue::store>); });
}

/// False where this device or these sizes are not for the kernel.
template <class Element>
bool run(Epilogue epilogue, const Product<Element>& product, cudaStream_t stream) {
  const int multiprocessors = multiprocessors_for<Element>(product.n, product.k);
  if (multiprocessors == 0) return false;
  switch (epilogue) {
    case Epilogue::store:
      return launch<Element, Epilogue::store>(product, multiprocessors, stream);
    case Epilogue::store_floats:
      return launch<Element, Epilogue::store_floats>(product, multiprocessors, stream);
    case Epilogue::swiglu:
      return launch<Element, Epilogue::swiglu>(product, multiprocessors, stream);
    case Epilogue::geglu:
      return launch<Element, Epilogue::geglu>(product, multiprocessors, stream);
    case Epilogue::add:
      return launch<Element, Epilogue::add>(product, multiprocessors, stream);
    case Epilogue::heads:
      return launch<Element, Epilogue::heads>(product, multiprocessors, stream);
    case Epilogue::clamped:  // of experts alone
      break;
  }
  return false;
}

/// Whether the epilogue `heads` can place such heads.
inline bool places(const HeadLayout& layout) {
  return (layout.head_dim == 128 || layout.head_dim == 64) && layout.rotary_dim == layout.head_dim &&
         layout.norm != 2;
}
}  // namespace
}  // namespace sheaf::cuda

#pragma once
#include <stdexcept>
#include <type_traits>

#include "cuda/attention/hopper_consumer.h"
#include "cuda/attention/hopper_heads.h"
#include "cuda/attention/hopper_loads.h"
#include "cuda/attention/hopper_scores.h"
#include "cuda/attention/hopper_sight.h"
#include "cuda/base/launch.h"

/// The Hopper kernel, and how it is launched for heads of D.
namespace sheaf::cuda {
namespace {

template <class T>
__device__ const T* queries(const AttentionTensors& tensors) {
  if constexpr (sizeof(T) == 1)
    return tensors.q8;
  else
    return tensors.q;
}

/// `k_map`, `v_map`: boxes of a page of keys and values, see page_map(); `inputs` [1].
template <class Softmax, int D, int kGroups, class Scores, class Sight>
__global__ __launch_bounds__(128 * (kGroups + 1), kGroups == 1 ? 2 : 1) void attend_kernel(
    const __grid_constant__ CUtensorMap k_map, const __grid_constant__ CUtensorMap v_map,
    const AttentionInputs* inputs, const __grid_constant__ HeadLayout layout,
    const __grid_constant__ AttentionTensors tensors) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using T = typename Softmax::Number;
  using Memory = Shared<T, D, kGroups>;
  extern __shared__ uint8_t bytes[];
  Memory& memory = aligned_shared<Memory>(bytes);
  const int warpgroup = this_warpgroup(), lane = threadIdx.x % 32;
  const AttentionInputs& in = *inputs;
  const AttentionItem* items = kGroups == 1 ? in.items : in.items + in.small_items;
  const int work_count = (kGroups == 1 ? in.small_items : in.large_items) * layout.kv_heads;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Memory::kQueries; ++i) {
      barrier_init(&memory.q_full[i], 96);
      barrier_init(&memory.q_empty[i], 4 * kGroups);
    }
    for (int i = 0; i < Memory::kStages; ++i) {
      barrier_init(&memory.k_full[i], 1);
      barrier_init(&memory.v_full[i], 1);
      barrier_init(&memory.k_empty[i], 4 * kGroups);
      barrier_init(&memory.v_empty[i], 4 * kGroups);
    }
    fence_barrier_init();
  }
  __syncthreads();

  if (warpgroup == 0) {
    keep_registers<kGroups == 1 ? 48 : 40>();
    const int warp = threadIdx.x / 32;
    if (warp == 0)
      bring_pages(memory, &k_map, &v_map, in, items, work_count, layout, lane);
    else
      bring_queries(memory, in, items, work_count, layout, queries<T>(tensors),
                    static_cast<int>(threadIdx.x) - 32);
  } else {
    take_registers<kGroups == 1 ? 208 : 232>();
    Consumer<Softmax, D, kGroups, Scores, Sight> consumer{in,
                                                          layout,
                                                          tensors,
                                                          memory,
                                                          warpgroup - 1,
                                                          static_cast<int>(threadIdx.x) / 32 % 4,
                                                          lane,
                                                          layout.heads / layout.kv_heads};
    AttentionItem next = item_at(items, blockIdx.x, work_count, layout);
    for (int work = blockIdx.x; work < work_count; work += gridDim.x) {
      const AttentionItem item = next;
      next = item_at(items, work + gridDim.x, work_count, layout);
      if constexpr (Softmax::kInOrder)
        consumer.attend_in_order(item, work % layout.kv_heads);
      else
        consumer.attend(item, work % layout.kv_heads);
    }
  }
#endif
}

/// Boxes of `height` rows of `width` bytes of [kv_heads, rows, row_bytes].
CUtensorMap box_map(const void* tensor, const HeadLayout& layout, int64_t row_bytes, int64_t rows, int width,
                    int height, CUtensorMapSwizzle swizzle) {
  const auto bytes = static_cast<cuuint64_t>(row_bytes), count = static_cast<cuuint64_t>(rows);
  return tensor_map<3>(CU_TENSOR_MAP_DATA_TYPE_UINT8, tensor,
                       {bytes, count, static_cast<cuuint64_t>(layout.kv_heads)}, {bytes, bytes * count},
                       {static_cast<cuuint32_t>(width), static_cast<cuuint32_t>(height), 1}, swizzle,
                       "the pool");
}
/// Pages of keys or values [kv_heads, slots, D], a line of columns at a time.
template <class T, int D>
CUtensorMap page_map(const T* tensor, const HeadLayout& layout) {
  using L = Lines<T, D>;
  const auto swizzle = L::kLine == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B;
  return box_map(tensor, layout, L::kBytes, layout.slots, L::kLine, kPage, swizzle);
}
/// Pages of e4m3 values [kv_heads, pages, D, kPage], as they lie.
template <int D>
CUtensorMap value_map(const e4m3* tensor, const HeadLayout& layout) {
  constexpr int row = 256;
  return box_map(tensor, layout, row, layout.slots * D / row, row, kPage * D / row,
                 CU_TENSOR_MAP_SWIZZLE_NONE);
}

/// What a launch needs beside the kernel.
struct Launch {
  CUtensorMap k_map, v_map;
  const AttentionInputs& in;
  const AttentionInputs* on_device;
  const HeadLayout& layout;
  const AttentionTensors& tensors;
  int multiprocessors;
  cudaStream_t stream;
};

template <class Softmax, int D, int kGroups, class Scores, class Sight>
void launch(const Launch& with) {
  constexpr int shared = static_cast<int>(sizeof(Shared<typename Softmax::Number, D, kGroups>)) + 1024;
  constexpr int blocks_each = kGroups == 1 && 2 * (shared + 1024) <= kSharedMemory ? 2 : 1;
  static_assert(shared + 1024 <= kSharedMemory, "a Hopper multiprocessor's shared memory");
  const auto kernel = attend_kernel<Softmax, D, kGroups, Scores, Sight>;
  static PerDevice<cudaError_t> ready;
  if (!allow_shared(kernel, shared, ready)) throw std::runtime_error("CUDA: no shared memory for attention");
  // As many blocks as fit, whatever the step: a replayed graph may find more to do than there was when it was
  // made.
  const int blocks = with.multiprocessors * blocks_each;
  kernel<<<blocks, 128 * (kGroups + 1), shared, with.stream>>>(with.k_map, with.v_map, with.on_device,
                                                               with.layout, with.tensors);
}

template <class Softmax, int D, class Scores, class Sight>
void launch_blocks(const Launch& with) {
  if (with.in.large_items > 0) launch<Softmax, D, 2, Scores, Sight>(with);
  if (with.in.small_items > 0) launch<Softmax, D, 1, Scores, Sight>(with);
}

template <class Softmax, int D, class Scores>
void launch_in_sight(const Launch& with) {
  with.in.window > 0 ? launch_blocks<Softmax, D, Scores, SeesWindow>(with)
                     : launch_blocks<Softmax, D, Scores, SeesAll>(with);
}

template <class Softmax, int D, bool kSinks>
void launch_all(const Launch& with) {
  if constexpr (HopperHeads<D, kSinks>::kTakesCaps)
    if (with.layout.score_cap > 0) return launch_in_sight<Softmax, D, CappedScores>(with);
  launch_in_sight<std::conditional_t<kSinks, WithSinks<Softmax>, Softmax>, D, PlainScores>(with);
}

}  // namespace

template <int D, bool kSinks>
int HopperHeads<D, kSinks>::multiprocessors() {
  static PerDevice<int> multiprocessors;
  using Softmax = std::conditional_t<kSinks, WithSinks<PlainSoftmax>, PlainSoftmax>;
  return multiprocessors.get(
      [] { return hopper_multiprocessors(attend_kernel<Softmax, D, 2, PlainScores, SeesAll>); });
}

template <int D, bool kSinks>
void HopperHeads<D, kSinks>::attend(const AttentionInputs& inputs, const AttentionInputs* on_device,
                                    const HeadLayout& layout, const AttentionTensors& tensors,
                                    cudaStream_t stream) {
  Launch with{{}, {}, inputs, on_device, layout, tensors, multiprocessors(), stream};
  if (tensors.q8) {
    with.k_map = page_map<e4m3, D>(tensors.narrow.keys, layout);
    with.v_map = value_map<D>(tensors.narrow.values, layout);
    return launch_all<NarrowSoftmax, D, kSinks>(with);
  }
  with.k_map = page_map<f16, D>(tensors.keys, layout);
  with.v_map = page_map<f16, D>(tensors.values, layout);
  inputs.in_order ? launch_all<InOrderSoftmax, D, kSinks>(with) : launch_all<PlainSoftmax, D, kSinks>(with);
}

}  // namespace sheaf::cuda

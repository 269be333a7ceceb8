// Span attention on Hopper: wgmma, and bulk copies of pages. Blocks stay on a multiprocessor and take one
// item (a block of queries and its list of pages) after the other. One warp brings keys and values, three
// bring queries, and one or two warpgroups of 64 queries each compute. While a warpgroup's softmax runs, its
// next scores and its last weighted values are in the matrix unit.
//
// Work: 4 × D FLOPs a query and key; bytes: 4 × D a key and block, so 64 or 128 FLOP per byte read from L2.

#include <stdexcept>

#include "cuda/attention/hopper_consumer.h"
#include "cuda/base/per_device.h"
#include "cuda/base/tensor_map.h"

namespace sheaf::cuda {
namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// A block's work is a number: an item, and a head for keys and values. Past the end: an item without pages.
__device__ AttentionItem item_at(const AttentionItem* items, int work, int work_count,
                                 const HeadLayout& layout) {
  return work < work_count ? items[work / layout.kv_heads] : AttentionItem{};
}

/// One warp: pages of keys and values, in the order in which they are used.
template <int D, int kGroups, int kKeys>
__device__ void bring_pages(Shared<D, kGroups, kKeys>& memory, const CUtensorMap* k_map,
                            const CUtensorMap* v_map, const AttentionInputs& in, const AttentionItem* items,
                            int work_count, const HeadLayout& layout, int lane) {
  using Memory = Shared<D, kGroups, kKeys>;
  constexpr int kPages = kKeys / kPage;
  constexpr uint32_t kBytes = kKeys * D * sizeof(f16);
  RingPlace k_place, v_place;
  const int nowhere = static_cast<int>(layout.slots);  // outside of the tensor: zeros
  const int4* pages = reinterpret_cast<const int4*>(in.pages);
  const auto slot_at = [&](const AttentionItem& item, int stage) {
    const int at = stage * kPages + lane;
    return lane < kPages && at < item.page_count ? pages[item.first_page + at].x : nowhere;
  };
  // What comes next is looked up a stage ahead, also from one item to the next: each look costs a
  // microsecond.
  AttentionItem item = item_at(items, blockIdx.x, work_count, layout);
  int slot = slot_at(item, 0), slot_before = 0;
  for (int work = blockIdx.x; work < work_count; work += gridDim.x) {
    const AttentionItem next_item = item_at(items, work + gridDim.x, work_count, layout);
    const int kv_head = work % layout.kv_heads;
    const int stages = (item.page_count + kPages - 1) / kPages;
    auto bring = [&](f16(&to)[Memory::kStages][Memory::kHalves][kKeys][64], const CUtensorMap* map, int from,
                     uint64_t* full, uint64_t* empty, RingPlace& place) {
      barrier_wait(&empty[place.at], place.round ^ 1);
      if (lane == 0) barrier_expect(&full[place.at], kBytes);
      __syncwarp();
      if (lane < kPages) {
#pragma unroll
        for (int half = 0; half < Memory::kHalves; ++half)
          copy_box(&to[place.at][half][lane * kPage][0], map, half * 64, from, kv_head, &full[place.at]);
      }
      place.template step<Memory::kStages>();
    };
    for (int stage = 0; stage < stages; ++stage) {
      const int next = stage + 1 < stages ? slot_at(item, stage + 1) : slot_at(next_item, 0);
      bring(memory.k, k_map, slot, memory.k_full, memory.k_empty, k_place);
      if (stage > 0) bring(memory.v, v_map, slot_before, memory.v_full, memory.v_empty, v_place);
      slot_before = slot;
      slot = next;
    }
    bring(memory.v, v_map, slot_before, memory.v_full, memory.v_empty, v_place);
    item = next_item;
  }
}

/// Three warps: the queries of the next item while the warpgroups are at this one.
template <int D, int kGroups, int kKeys>
__device__ void bring_queries(Shared<D, kGroups, kKeys>& memory, const AttentionInputs& in,
                              const AttentionItem* items, int work_count, const HeadLayout& layout,
                              const f16* q, int thread) {
  constexpr int kChunks = D / 8;
  const int group = layout.heads / layout.kv_heads;
  RingPlace place;
  for (int work = blockIdx.x; work < work_count; work += gridDim.x) {
    const AttentionItem item = items[work / layout.kv_heads];
    const int kv_head = work % layout.kv_heads;
    const int queries = item.row_count * group;
    barrier_wait(&memory.q_empty[place.at], place.round ^ 1);
    for (int i = thread; i < 64 * kGroups * kChunks; i += 96) {
      const int m = i / kChunks, chunk = i % kChunks;
      const bool valid = m < queries;
      const int64_t row = valid ? in.rows[item.first_row + m / group] : 0;
      const f16* from = q + (row * layout.heads + kv_head * group + m % group) * D + chunk * 8;
      f16* to = &memory.q[place.at][m / 64][chunk / 8][m % 64][((chunk % 8) ^ (m % 8)) * 8];
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                   "r"(valid ? 16 : 0));
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    fence_shared_writes();
    barrier_arrive(&memory.q_full[place.at]);
    place.step<2>();
  }
}
#endif

/// `k_map`, `v_map`: boxes of a page and 64 columns of keys and values [kv_heads, slots, D]; `inputs` [1].
template <int D, int kGroups, int kKeys, bool kInOrder>
__global__ __launch_bounds__(128 * (kGroups + 1), kGroups == 1 ? 2 : 1) void attend_kernel(
    const __grid_constant__ CUtensorMap k_map, const __grid_constant__ CUtensorMap v_map,
    const AttentionInputs* inputs, const __grid_constant__ HeadLayout layout,
    const __grid_constant__ AttentionTensors tensors) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Memory = Shared<D, kGroups, kKeys>;
  extern __shared__ uint8_t bytes[];
  // The base of dynamic shared memory need not be aligned to 1,024 bytes.
  Memory& memory = *reinterpret_cast<Memory*>((reinterpret_cast<uintptr_t>(bytes) + 1023) & ~uintptr_t{1023});
  const int warpgroup = this_warpgroup(), lane = threadIdx.x % 32;
  const AttentionInputs& in = *inputs;
  const AttentionItem* items = kGroups == 1 ? in.items : in.items + in.small_items;
  const int work_count = (kGroups == 1 ? in.small_items : in.large_items) * layout.kv_heads;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
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
      bring_queries(memory, in, items, work_count, layout, tensors.q, static_cast<int>(threadIdx.x) - 32);
  } else {
    take_registers<kGroups == 1 ? 208 : 232>();
    Consumer<D, kGroups, kKeys> consumer{in,
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
      if constexpr (kInOrder)
        consumer.attend_in_order(item, work % layout.kv_heads);
      else
        consumer.attend(item, work % layout.kv_heads);
    }
  }
#endif
}

/// Pages of [kv_heads, slots, D], 64 columns at a time.
bool page_map(const f16* tensor, const HeadLayout& layout, CUtensorMap& map) {
  const auto d = static_cast<cuuint64_t>(layout.padded_dim), slots = static_cast<cuuint64_t>(layout.slots);
  const cuuint64_t sizes[3] = {d, slots, static_cast<cuuint64_t>(layout.kv_heads)};
  const cuuint64_t strides[2] = {d * sizeof(f16), d * slots * sizeof(f16)};
  const cuuint32_t box[3] = {64, kPage, 1};
  const cuuint32_t steps[3] = {1, 1, 1};
  return tensor_map_encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, const_cast<f16*>(tensor), sizes,
                              strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                              CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <int D, int kGroups, int kKeys, bool kInOrder>
void launch(const CUtensorMap& k_map, const CUtensorMap& v_map, const AttentionInputs* in,
            const HeadLayout& layout, const AttentionTensors& tensors, int multiprocessors,
            cudaStream_t stream) {
  constexpr int shared = static_cast<int>(sizeof(Shared<D, kGroups, kKeys>)) + 1024;
  const auto kernel = attend_kernel<D, kGroups, kKeys, kInOrder>;
  static PerDevice<cudaError_t> ready;
  const auto make_ready = [&] {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  };
  if (ready.get(make_ready) != cudaSuccess) throw std::runtime_error("CUDA: no shared memory for attention");
  // As many blocks as fit, whatever the step: a replayed graph may find more to do than there was when it was
  // made.
  const int blocks = multiprocessors * (kGroups == 1 ? 2 : 1);
  kernel<<<blocks, 128 * (kGroups + 1), shared, stream>>>(k_map, v_map, in, layout, tensors);
}

template <int D, bool kInOrder>
void launch_all(const CUtensorMap& k_map, const CUtensorMap& v_map, const AttentionInputs& in,
                const AttentionInputs* on_device, const HeadLayout& layout, const AttentionTensors& tensors,
                int multiprocessors, cudaStream_t stream) {
  if (in.large_items > 0)
    launch<D, 2, 128, kInOrder>(k_map, v_map, on_device, layout, tensors, multiprocessors, stream);
  if (in.small_items > 0)
    launch<D, 1, 64, kInOrder>(k_map, v_map, on_device, layout, tensors, multiprocessors, stream);
}

int multiprocessors_for(const HeadLayout& layout, int32_t page_size) {
  static PerDevice<int> multiprocessors;
  const bool fits =
      page_size == kPage && layout.head_dim % 8 == 0 && (layout.padded_dim == 64 || layout.padded_dim == 128);
  if (!fits) return 0;
  return multiprocessors.get([] { return hopper_multiprocessors(attend_kernel<128, 2, 128, false>); });
}

}  // namespace

bool hopper_attention(const HeadLayout& layout, int32_t page_size) {
  return multiprocessors_for(layout, page_size) > 0;
}

bool rounds_to_fp8(const HeadLayout& layout, int32_t page_size) {
  return layout.head_dim == kFp8Block && hopper_attention(layout, page_size);
}

bool attend_hopper(const AttentionInputs& inputs, const AttentionInputs* on_device, const HeadLayout& layout,
                   const AttentionTensors& tensors, cudaStream_t stream) {
  const int multiprocessors = multiprocessors_for(layout, inputs.page_size);
  if (multiprocessors == 0) return false;
  CUtensorMap k_map, v_map;
  if (!page_map(tensors.keys, layout, k_map) || !page_map(tensors.values, layout, v_map))
    throw std::runtime_error("CUDA: the driver refuses a map of the pool");
  const auto run = layout.padded_dim == 128
                       ? (inputs.in_order ? launch_all<128, true> : launch_all<128, false>)
                       : (inputs.in_order ? launch_all<64, true> : launch_all<64, false>);
  run(k_map, v_map, inputs, on_device, layout, tensors, multiprocessors, stream);
  return true;
}

}  // namespace sheaf::cuda

// Span attention on Hopper: wgmma, and bulk copies of pages. Blocks stay on a multiprocessor and take one
// item (a block of queries and its list of pages) after the other. One warp brings keys and values, three
// bring queries, and one or two warpgroups of 64 queries each compute. While a warpgroup's softmax runs, its
// next scores and its last weighted values are in the matrix unit.
//
// Work: 4 × D FLOPs a query and key; bytes: 4 × D a key and block (e4m3: 2 × D), so 64 or 128 FLOP per byte
// read from L2.

#include <stdexcept>

#include "cuda/attention/hopper_consumer.h"
#include "cuda/base/launch.h"

namespace sheaf::cuda {
namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// A block's work is a number: an item, and a head for keys and values. Past the end: an item without pages.
__device__ AttentionItem item_at(const AttentionItem* items, int work, int work_count,
                                 const HeadLayout& layout) {
  return work < work_count ? items[work / layout.kv_heads] : AttentionItem{};
}

/// One warp: pages of keys and values, in the order in which they are used.
template <class T, int D, int kGroups, int kKeys>
__device__ void bring_pages(Shared<T, D, kGroups, kKeys>& memory, const CUtensorMap* k_map,
                            const CUtensorMap* v_map, const AttentionInputs& in, const AttentionItem* items,
                            int work_count, const HeadLayout& layout, int lane) {
  using Memory = Shared<T, D, kGroups, kKeys>;
  constexpr int kPages = kKeys / kPage;
  constexpr uint32_t kBytes = kKeys * Memory::kBytes;
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
    auto bring = [&](auto& to, const CUtensorMap* map, int from, uint64_t* full, uint64_t* empty,
                     RingPlace& place) {
      barrier_wait(&empty[place.at], place.round ^ 1);
      if (lane == 0) barrier_expect(&full[place.at], kBytes);
      __syncwarp();
      if (lane < kPages) {
#pragma unroll
        for (int half = 0; half < Memory::kHalves; ++half)
          copy_box(&to[place.at][half][lane * kPage][0], map, half * Memory::kLine, from, kv_head,
                   &full[place.at]);
      }
      place.template step<Memory::kStages>();
    };
    // Pages of e4m3 values are rows of 256 bytes.
    const auto value_row = [](int slot) { return Memory::kNarrow ? slot / kPage * (kPage * D / 256) : slot; };
    for (int stage = 0; stage < stages; ++stage) {
      const int next = stage + 1 < stages ? slot_at(item, stage + 1) : slot_at(next_item, 0);
      bring(memory.k, k_map, slot, memory.k_full, memory.k_empty, k_place);
      if (stage > 0) bring(memory.v, v_map, value_row(slot_before), memory.v_full, memory.v_empty, v_place);
      slot_before = slot;
      slot = next;
    }
    bring(memory.v, v_map, value_row(slot_before), memory.v_full, memory.v_empty, v_place);
    item = next_item;
  }
}

/// Three warps: the queries of the next item while the warpgroups are at this one.
template <class T, int D, int kGroups, int kKeys>
__device__ void bring_queries(Shared<T, D, kGroups, kKeys>& memory, const AttentionInputs& in,
                              const AttentionItem* items, int work_count, const HeadLayout& layout,
                              const T* q, int thread) {
  using Memory = Shared<T, D, kGroups, kKeys>;
  constexpr int kChunks = Memory::kBytes / 16, kOfLine = Memory::kChunks;
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
      const T* from = q + (row * layout.heads + kv_head * group + m % group) * D + chunk * (D / kChunks);
      uint8_t* to = &memory.q[place.at][m / 64][chunk / kOfLine][m % 64]
                             [swizzled<Memory::kLine>(chunk % kOfLine, m) * 16];
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

template <class T>
__device__ const T* queries(const AttentionTensors& tensors) {
  if constexpr (sizeof(T) == 1)
    return tensors.q8;
  else
    return tensors.q;
}

/// `k_map`, `v_map`: boxes of a page of keys and values, see page_map(); `inputs` [1].
template <class T, int D, int kGroups, int kKeys, bool kInOrder, class Sight>
__global__ __launch_bounds__(128 * (kGroups + 1), kGroups == 1 ? 2 : 1) void attend_kernel(
    const __grid_constant__ CUtensorMap k_map, const __grid_constant__ CUtensorMap v_map,
    const AttentionInputs* inputs, const __grid_constant__ HeadLayout layout,
    const __grid_constant__ AttentionTensors tensors) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Memory = Shared<T, D, kGroups, kKeys>;
  extern __shared__ uint8_t bytes[];
  Memory& memory = aligned_shared<Memory>(bytes);
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
      bring_queries(memory, in, items, work_count, layout, queries<T>(tensors),
                    static_cast<int>(threadIdx.x) - 32);
  } else {
    take_registers<kGroups == 1 ? 208 : 232>();
    Consumer<T, D, kGroups, kKeys, Sight> consumer{in,
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

template <class T, int D, int kGroups, int kKeys, bool kInOrder, class Sight>
void launch(const Launch& with) {
  constexpr int shared = static_cast<int>(sizeof(Shared<T, D, kGroups, kKeys>)) + 1024;
  constexpr int blocks_each = kGroups == 1 ? 2 : 1;
  static_assert(blocks_each * (shared + 1024) <= 233472, "a Hopper multiprocessor's shared memory");
  const auto kernel = attend_kernel<T, D, kGroups, kKeys, kInOrder, Sight>;
  static PerDevice<cudaError_t> ready;
  if (!allow_shared(kernel, shared, ready)) throw std::runtime_error("CUDA: no shared memory for attention");
  // As many blocks as fit, whatever the step: a replayed graph may find more to do than there was when it was
  // made.
  const int blocks = with.multiprocessors * blocks_each;
  kernel<<<blocks, 128 * (kGroups + 1), shared, with.stream>>>(with.k_map, with.v_map, with.on_device,
                                                               with.layout, with.tensors);
}

template <class T, int D, bool kInOrder, class Sight>
void launch_blocks(const Launch& with) {
  if (with.in.large_items > 0) launch<T, D, 2, 128, kInOrder, Sight>(with);
  if (with.in.small_items > 0) launch<T, D, 1, 64, kInOrder, Sight>(with);
}

template <class T, int D, bool kInOrder>
void launch_all(const Launch& with) {
  with.in.window > 0 ? launch_blocks<T, D, kInOrder, SeesWindow>(with)
                     : launch_blocks<T, D, kInOrder, SeesAll>(with);
}

template <int D>
void attend_with(Launch& with) {
  const AttentionTensors& tensors = with.tensors;
  if (tensors.q8) {
    with.k_map = page_map<e4m3, D>(tensors.narrow.keys, with.layout);
    with.v_map = value_map<D>(tensors.narrow.values, with.layout);
    return launch_all<e4m3, D, false>(with);
  }
  with.k_map = page_map<f16, D>(tensors.keys, with.layout);
  with.v_map = page_map<f16, D>(tensors.values, with.layout);
  with.in.in_order ? launch_all<f16, D, true>(with) : launch_all<f16, D, false>(with);
}

int multiprocessors_for(const HeadLayout& layout, int32_t page_size) {
  static PerDevice<int> multiprocessors;
  const bool fits = page_size == kPage && layout.head_dim % 8 == 0 && layout.score_cap == 0 &&
                    (layout.padded_dim == 64 || layout.padded_dim == 128);
  if (!fits) return 0;
  return multiprocessors.get(
      [] { return hopper_multiprocessors(attend_kernel<f16, 128, 2, 128, false, SeesAll>); });
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
  Launch with{{}, {}, inputs, on_device, layout, tensors, multiprocessors, stream};
  layout.padded_dim == 128 ? attend_with<128>(with) : attend_with<64>(with);
  return true;
}

}  // namespace sheaf::cuda

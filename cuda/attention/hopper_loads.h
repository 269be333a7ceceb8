#pragma once
#include <type_traits>

#include "cuda/attention/hopper_memory.h"
#include "cuda/base/hopper.h"

/// What the warps of the Hopper kernel that do not compute bring to shared memory.
namespace sheaf::cuda {
namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// A block's work is a number: an item, and a head for keys and values. Past the end: an item without pages.
__device__ AttentionItem item_at(const AttentionItem* items, int work, int work_count,
                                 const HeadLayout& layout) {
  return work < work_count ? items[work / layout.kv_heads] : AttentionItem{};
}

/// One warp: pages of keys and values, in the order in which they are used.
template <class T, int D, int kGroups>
__device__ void bring_pages(Shared<T, D, kGroups>& memory, const CUtensorMap* k_map, const CUtensorMap* v_map,
                            const AttentionInputs& in, const AttentionItem* items, int work_count,
                            const HeadLayout& layout, int lane) {
  using Memory = Shared<T, D, kGroups>;
  constexpr int kKeys = Memory::kKeys, kPages = kKeys / kPage;
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
    // `pieces`: boxes of a page.
    auto bring = [&](auto& to, auto pieces, const CUtensorMap* map, int from, uint64_t* full, uint64_t* empty,
                     RingPlace& place) {
      constexpr int kPieces = decltype(pieces)::value, kWidth = Memory::kBytes / kPieces;
      barrier_wait(&empty[place.at], place.round ^ 1);
      if (lane == 0) barrier_expect(&full[place.at], kBytes);
      __syncwarp();
      if (lane < kPages) {
#pragma unroll
        for (int piece = 0; piece < kPieces; ++piece)
          copy_box(&to[place.at][0][0][0] + (piece * kKeys + lane * kPage) * kWidth, map, piece * kWidth,
                   from, kv_head, &full[place.at]);
      }
      place.template step<Memory::kStages>();
    };
    const std::integral_constant<int, Memory::kHalves> lines;
    const std::integral_constant<int, Memory::kNarrow ? 1 : Memory::kHalves> value_lines;
    // Pages of e4m3 values are rows of 256 bytes, which come in one piece.
    const auto value_row = [](int slot) { return Memory::kNarrow ? slot / kPage * (kPage * D / 256) : slot; };
    for (int stage = 0; stage < stages; ++stage) {
      const int next = stage + 1 < stages ? slot_at(item, stage + 1) : slot_at(next_item, 0);
      bring(memory.k, lines, k_map, slot, memory.k_full, memory.k_empty, k_place);
      if (stage > 0)
        bring(memory.v, value_lines, v_map, value_row(slot_before), memory.v_full, memory.v_empty, v_place);
      slot_before = slot;
      slot = next;
    }
    bring(memory.v, value_lines, v_map, value_row(slot_before), memory.v_full, memory.v_empty, v_place);
    item = next_item;
  }
}

/// Three warps: the queries of the next item while the warpgroups are at this one.
template <class T, int D, int kGroups>
__device__ void bring_queries(Shared<T, D, kGroups>& memory, const AttentionInputs& in,
                              const AttentionItem* items, int work_count, const HeadLayout& layout,
                              const T* q, int thread) {
  using Memory = Shared<T, D, kGroups>;
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
    place.template step<Memory::kQueries>();
  }
}
#endif

}  // namespace
}  // namespace sheaf::cuda

#pragma once
#include "core/backend/footprint.h"
#include "cuda/attention/attention.h"

/// The shared memory of a block of the Hopper kernel.
namespace sheaf::cuda {
namespace {

// A page is two groups of eight keys, as the matrix unit lays out their scores.
constexpr int kPage = 16;
static_assert(kPage == kPageSize, "pages of another size would leave this kernel unused");
static_assert(kPage == kNarrowPage);

/// What a multiprocessor has for blocks, each of which takes another 1,024 bytes.
constexpr int kSharedMemory = 233472;

/// How heads of D numbers of f16 or e4m3 lie in shared memory. A line is what the copy engine swizzles.
template <class T, int D>
struct Lines {
  static constexpr bool kNarrow = sizeof(T) == 1;
  static constexpr int kBytes = D * static_cast<int>(sizeof(T));
  static constexpr int kLine = kBytes < 128 ? kBytes : 128;
  static constexpr int kHalves = kBytes / kLine;
  static constexpr int kChunks = kLine / 16;
};

/// What a block takes at a time. T: numbers that are multiplied; D: dimensions of a head; kGroups: computing
/// warpgroups, each of 64 queries.
///
/// In heads of 256, results take 128 registers of a thread, which leave room for the scores of 64 keys, not
/// of 128; and only the queries of one item fit. In KiB of queries, stages of keys and values, and folded
/// sums:
///   two warpgroups  f16 64 + 2 × 64; e4m3 32 + 2 × 32 + 128
///   one             f16 32 + 2 × 32 (two blocks on a multiprocessor); e4m3 2 × 16 + 4 × 32 + 64
template <class T, int D, int kGroups>
struct Sizes : Lines<T, D> {
  static constexpr bool kWide = D > 128, kNarrow = Lines<T, D>::kNarrow, kOne = kGroups == 1;
  /// Keys of a stage.
  static constexpr int kKeys = !kWide ? 64 * kGroups : kOne && !kNarrow ? 32 : 64;
  /// Items whose queries it holds.
  static constexpr int kQueries = kWide && !(kOne && kNarrow) ? 1 : 2;
  static constexpr int kStages = !kNarrow ? 2 : kOne ? (kWide ? 4 : 3) : (kWide ? 2 : 4);
};

template <class T, int D, int kGroups>
struct Shared : Sizes<T, D, kGroups> {
  using Size = Sizes<T, D, kGroups>;
  using Size::kHalves, Size::kKeys, Size::kLine, Size::kNarrow, Size::kQueries, Size::kStages;
  alignas(1024) uint8_t q[kQueries][kGroups][kHalves][64][kLine];
  alignas(1024) uint8_t k[kStages][kHalves][kKeys][kLine];
  alignas(1024) uint8_t v[kStages][kHalves][kKeys][kLine];          // e4m3: pages as NarrowKeys has them
  float4 folded[kNarrow ? kGroups * D / 8 : 1][kNarrow ? 128 : 1];  // see NarrowSoftmax
  uint64_t q_full[kQueries], q_empty[kQueries];
  uint64_t k_full[kStages], k_empty[kStages], v_full[kStages], v_empty[kStages];
};

/// Where a ring stands: which stage, and how often it went round.
struct RingPlace {
  int at = 0;
  uint32_t round = 0;
  template <int stages>
  __device__ void step() {
    if (++at == stages) {
      at = 0;
      round ^= 1;
    }
  }
};

}  // namespace
}  // namespace sheaf::cuda

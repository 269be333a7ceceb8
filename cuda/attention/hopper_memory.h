#pragma once
#include <climits>

#include "core/backend/footprint.h"
#include "cuda/attention/attention.h"

/// The shared memory of a block of the Hopper kernel, and which of its keys a row sees.
namespace sheaf::cuda {
namespace {

// A page is two groups of eight keys, as the matrix unit lays out their scores.
constexpr int kPage = 16;
static_assert(kPage == kPageSize, "pages of another size would leave this kernel unused");
static_assert(kPage == kNarrowPage);

/// How heads of D numbers of f16 or e4m3 lie in shared memory. A line is what the copy engine swizzles.
template <class T, int D>
struct Lines {
  static constexpr bool kNarrow = sizeof(T) == 1;
  static constexpr int kBytes = D * static_cast<int>(sizeof(T));
  static constexpr int kLine = kBytes < 128 ? kBytes : 128;
  static constexpr int kHalves = kBytes / kLine;
  static constexpr int kChunks = kLine / 16;
};

/// T: numbers that are multiplied; D: dimensions of a head; kGroups: warpgroups that compute; kKeys: keys of
/// a stage.
template <class T, int D, int kGroups, int kKeys>
struct Shared : Lines<T, D> {
  using Lines<T, D>::kHalves;
  using Lines<T, D>::kLine;
  static constexpr int kStages = !Lines<T, D>::kNarrow ? 2 : kGroups == 1 ? 3 : 4;
  alignas(1024) uint8_t q[2][kGroups][kHalves][64][kLine];
  alignas(1024) uint8_t k[kStages][kHalves][kKeys][kLine];
  alignas(1024) uint8_t v[kStages][kHalves][kKeys][kLine];  // e4m3: pages as NarrowKeys has them
  float4 folded[Lines<T, D>::kNarrow ? kGroups * D / 8 : 1][Lines<T, D>::kNarrow ? 128 : 1];  // see fold()
  uint64_t q_full[2], q_empty[2];
  uint64_t k_full[kStages], k_empty[kStages], v_full[kStages], v_empty[kStages];
};

// What a row sees of the pages of its block is a policy: all that they let it see, or what lies in its window
// too. It is asked at every stage, so that what a window needs costs nothing where there is none.

/// No window.
struct SeesAll {
  __device__ void begin(const AttentionInputs&, const int (&)[2]) {}
  __device__ int position(const AttentionInputs&, int) const { return 0; }
  __device__ bool whole(int) const { return true; }
  __device__ int hidden(int, int) const { return 0; }
};

/// A sliding window.
struct SeesWindow {
  int from[2];  ///< the first position that each of this thread's rows sees
  int latest;   ///< the last of them in the warp

  /// `rows`: of the step, -1: none.
  __device__ void begin(const AttentionInputs& in, const int (&rows)[2]) {
    latest = INT_MIN;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      from[i] = rows[i] >= 0 ? in.row_positions[rows[i]] - in.window + 1 : INT_MIN / 2;
      latest = max(latest, from[i]);
    }
    for (int offset = 16; offset > 0; offset /= 2)
      latest = max(latest, __shfl_xor_sync(0xffffffffu, latest, offset));
  }
  /// Of the first key of a page of the plan.
  __device__ int position(const AttentionInputs& in, int page) const {
    return in.page_positions[page];
  }
  /// Whether all rows of the warp see a page that begins there.
  __device__ bool whole(int position) const {
    return position >= latest;
  }
  /// Keys of such a page that come before the window of row i.
  __device__ int hidden(int i, int position) const {
    return from[i] - position;
  }
};

}  // namespace
}  // namespace sheaf::cuda

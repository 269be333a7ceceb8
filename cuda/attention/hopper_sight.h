#pragma once
#include <climits>

#include "cuda/attention/attention.h"

/// What a row sees of the pages of its block is a policy of the Hopper kernel: all that they let it see, or
/// what lies in its window too. It is asked at every stage, so that what a window needs costs nothing where
/// there is none.
namespace sheaf::cuda {
namespace {

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

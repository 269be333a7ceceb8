#pragma once
#include "cuda/attention/attention.h"
#include "cuda/base/device_math.h"

/// How the Hopper kernel makes weights of the scores of a stage is a policy: which base a row's weights are
/// relative to, when it moves, and how the sums of earlier stages follow it. All is in base 2.
namespace sheaf::cuda {
namespace {

/// A thread's part of the softmax of two queries. It has two scores of each group of eight keys, those of
/// query i at n * 4 + 2 * i and the next place.
struct RunningSoftmax {
  static constexpr bool kSinks = false;
  float high[2];      ///< the base of each query's weights, -inf where it has seen nothing yet
  float sum[2];       ///< of this thread's weights
  float shrink[2];    ///< what a move of the base multiplies earlier sums by
  float factor[2];    ///< what takes scores back from the scales of queries and keys
  float value_scale;  ///< what takes results back from the scale of values

  /// Nothing is seen yet. `m` and m + 8: this thread's queries in the block.
  __device__ void begin(const AttentionTensors&, const HeadLayout&, int /*kv_head*/, int /*group*/,
                        int /*m*/) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      high[i] = -INFINITY;
      sum[i] = 0;
      factor[i] = 1;
    }
    value_scale = 1;
  }

  /// What is subtracted from scores. Nothing seen yet: exp2(-inf - 0) is zero, not NaN.
  __device__ static float base(float high) {
    return high == -INFINITY ? 0.0f : high;
  }

  /// Follows the base with the sums in `out`.
  template <int count>
  __device__ void shrink_sums(float (&out)[count]) const {
#pragma unroll
    for (int n = 0; n < count / 4; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        out[n * 4 + 2 * i] *= shrink[i];
        out[n * 4 + 2 * i + 1] *= shrink[i];
      }
  }
};

/// The highest score of this thread's query i among its keys of groups `from` to `to` of eight.
template <int count>
__device__ float own_top(const float (&score)[count], int i, int from = 0, int to = count / 4) {
  float top = -INFINITY;
#pragma unroll
  for (int n = from; n < to; ++n) top = fmaxf(top, fmaxf(score[n * 4 + 2 * i], score[n * 4 + 2 * i + 1]));
  return top;
}
/// The highest of the four threads that share a query.
__device__ float shared_top(float top) {
  top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
  return fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
}
/// Makes weights of the scores of query i, as `exponent` has them; returns `added` and their sum. Groups of
/// eight keys as in own_top().
template <int count, class Exponent>
__device__ float weigh(float (&score)[count], int i, const Exponent& exponent, float added = 0, int from = 0,
                       int to = count / 4) {
#pragma unroll
  for (int n = from; n < to; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float& s = score[n * 4 + 2 * i + j];
      s = fast_exp2(exponent(s));
      added += s;
    }
  return added;
}

/// Relative to the highest score yet.
struct PlainSoftmax : RunningSoftmax {
  using Number = f16;
  static constexpr bool kInOrder = false;

  template <int count>
  __device__ void soften(float (&score)[count]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float top = shared_top(fmaxf(high[i], own_top(score, i)));
      shrink[i] = fast_exp2(high[i] - base(top));
      high[i] = top;
      const float added = weigh(score, i, [base = base(top)](float s) { return s - base; });
      sum[i] = sum[i] * shrink[i] + added;
    }
  }
  template <int count, class Place>
  __device__ void before_values(float (&)[count], int&, int, const Place&) {}
  template <int count>
  __device__ void after_values(float (&out)[count]) const {
    shrink_sums(out);
  }
  template <int count, class Place>
  __device__ void finish(float (&)[count], const Place&) const {}
};

/// For e4m3, relative to a base that moves only when a score exceeds it by kRoom.
///
/// The matrix unit keeps about 14 bits of a running sum of e4m3 products and cuts off the rest: over many
/// keys, sums would shrink. So they are added up in fp32, in shared memory, every kFold keys, and start anew.
struct NarrowSoftmax : RunningSoftmax {
  using Number = e4m3;
  static constexpr bool kInOrder = false;
  static constexpr float kRoom = 8.8f;  // weights of up to 446, which e4m3 holds
  /// The highest weight, in base 2, where a base is found, so that small ones behind a sink count; and where
  /// it moves.
  static constexpr float kFirst = 8, kMoved = 5;
  static constexpr int kFold = 1024;  // keys

  float folded_shrink[2];  ///< what moves of the base since the last fold() multiply folded sums by
  bool folded;

  __device__ void begin(const AttentionTensors& tensors, const HeadLayout& layout, int kv_head, int group,
                        int m) {
    RunningSoftmax::begin(tensors, layout, kv_head, group, m);
    const float* scales = tensors.narrow.scales;
    const float key_scale = scales[layout.heads + kv_head];
    value_scale = scales[layout.heads + layout.kv_heads + kv_head];
    folded_shrink[0] = folded_shrink[1] = 1;
    folded = false;
#pragma unroll
    for (int i = 0; i < 2; ++i) factor[i] = scales[kv_head * group + (m + 8 * i) % group] * key_scale;
  }

  template <int count>
  __device__ void soften(float (&score)[count]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float top = shared_top(own_top(score, i)) * factor[i];
      shrink[i] = 1;
      if (top > high[i] + kRoom) {
        const float base = top - (high[i] == -INFINITY ? kFirst : kMoved);
        shrink[i] = fast_exp2(high[i] - base);
        high[i] = base;
      }
      const auto exponent = [by = factor[i], base = base(high[i])](float s) { return fmaf(s, by, -base); };
      const float added = weigh(score, i, exponent);
      sum[i] = sum[i] * shrink[i] + added;
    }
  }

  /// `summed`: stages of `keys` keys in `out`; `place`: where this thread's folded sums lie, `count` / 4 of
  /// them 128 apart.
  template <int count, class Place>
  __device__ void before_values(float (&out)[count], int& summed, int keys, const Place& place) {
    if (__any_sync(0xffffffffu, shrink[0] != 1 || shrink[1] != 1)) {
      folded_shrink[0] *= shrink[0];
      folded_shrink[1] *= shrink[1];
      shrink_sums(out);
    }
    if (summed < kFold / keys) return;
    fold(out, place());
    folded = true;
    summed = 0;
  }
  template <int count>
  __device__ void after_values(float (&)[count]) const {}
  template <int count, class Place>
  __device__ void finish(float (&out)[count], const Place& place) const {
    if (folded) add_folded(out, place());
  }

 private:
  template <int count>
  __device__ void fold(float (&out)[count], float4* place) {
    if (folded) add_folded(out, place);
#pragma unroll
    for (int n = 0; n < count / 4; ++n)
      place[n * 128] = make_float4(out[n * 4], out[n * 4 + 1], out[n * 4 + 2], out[n * 4 + 3]);
    folded_shrink[0] = folded_shrink[1] = 1;
  }
  template <int count>
  __device__ void add_folded(float (&out)[count], const float4* place) const {
#pragma unroll
    for (int n = 0; n < count / 4; ++n) {
      const float4 before = place[n * 128];
      out[n * 4] += before.x * folded_shrink[0];
      out[n * 4 + 1] += before.y * folded_shrink[0];
      out[n * 4 + 2] += before.z * folded_shrink[1];
      out[n * 4 + 3] += before.w * folded_shrink[1];
    }
  }
};

/// In order: relative to a base that is the highest score of the first page that the row sees, and of every
/// later page that exceeds it by more than kRoom. So the base and all sums depend on the row's own pages
/// alone. Stages in which no base moves, nearly all, need no rescaling.
struct InOrderSoftmax : RunningSoftmax {
  using Number = f16;
  static constexpr bool kInOrder = true;
  static constexpr float kRoom = 8;  // weights of up to 256, which f16 holds

  /// Gives rows that have seen no page yet their base. Returns whether a base moves in this stage for any row
  /// of the warp.
  template <int count>
  __device__ bool find_bases(const float (&score)[count]) {
    bool moves = false;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (__any_sync(0xffffffffu, high[i] == -INFINITY)) {
#pragma unroll
        for (int page = 0; page < count / 8; ++page) {
          const float top = page_top(score, i, page);
          if (high[i] == -INFINITY) high[i] = top;
        }
      }
      moves = moves || own_top(score, i) > high[i] + kRoom;
    }
    return __any_sync(0xffffffffu, moves) != 0;
  }
  /// Moves the bases that a page exceeds. Returns whether one moves for any row of the warp.
  template <int count>
  __device__ bool move_bases(const float (&score)[count], int page) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float top = page_top(score, i, page);
      shrink[i] = 1;
      if (top > high[i] + kRoom) {
        shrink[i] = fast_exp2(high[i] - top);
        high[i] = top;
        sum[i] *= shrink[i];
      }
    }
    return __any_sync(0xffffffffu, shrink[0] != 1 || shrink[1] != 1) != 0;
  }
  template <int count>
  __device__ void soften_page(float (&score)[count], int page) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const auto exponent = [base = base(high[i])](float s) { return s - base; };
      sum[i] = weigh(score, i, exponent, sum[i], 2 * page, 2 * page + 2);
    }
  }

 private:
  template <int count>
  __device__ static float page_top(const float (&score)[count], int i, int page) {
    return shared_top(own_top(score, i, 2 * page, 2 * page + 2));
  }
};

/// With one more score of each query, of no key and no value. It counts once, where a whole result is
/// written; what is partial gets it when it is merged.
template <class Softmax>
struct WithSinks : Softmax {
  static constexpr bool kSinks = true;
  float sink[2];  ///< of each query's head

  __device__ void begin(const AttentionTensors& tensors, const HeadLayout& layout, int kv_head, int group,
                        int m) {
    Softmax::begin(tensors, layout, kv_head, group, m);
#pragma unroll
    for (int i = 0; i < 2; ++i) sink[i] = tensors.sinks[kv_head * group + (m + 8 * i) % group];
  }
};

}  // namespace
}  // namespace sheaf::cuda

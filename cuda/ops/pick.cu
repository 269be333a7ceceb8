// Greedy choice and log-probability, one block a row: one pass over the logits for the maximum and the sum of
// exponentials, online; where rivals are wanted, the two largest are kept, a watched token apart. 151,936
// fp32 logits a row are 608 kB: 1,024 rows are 148 us at 4.2 TB/s. NaN and plus infinity make the sum NaN,
// and so the log-probability, which is how the engine learns of them.
#include "cuda/base/device_math.h"
#include "cuda/ops/ops.h"

namespace sheaf::cuda {
namespace {

constexpr int kThreads = 1024;

struct Best {
  float value;
  int32_t token;
};

__device__ bool beats(Best a, Best b) {
  return a.value > b.value || (a.value == b.value && a.token < b.token);
}

/// The two best tokens met.
struct BestTwo {
  Best first, second;
  __device__ void take(Best other) {
    if (beats(other, first)) {
      second = first;
      first = other;
    } else if (beats(other, second)) {
      second = other;
    }
  }
  __device__ void join(const BestTwo& other) {
    take(other.first);
    take(other.second);
  }
};

/// `logits` [rows, vocab], `picks` and `out` [rows], `allowed` [tokens of all lists].
__global__ void pick_kernel(const float* logits, const GreedyPick* picks, const int32_t* allowed,
                            int32_t vocab, GreedyResult* out) {
  const float* row = logits + int64_t{blockIdx.x} * vocab;
  const GreedyPick pick = picks[blockIdx.x];
  if (pick.allowed_count < 0) return;
  const int32_t watch = pick.rivals ? pick.watch : -1;
  BestTwo best{{-INFINITY, INT32_MAX}, {-INFINITY, INT32_MAX}};
  float high = -INFINITY, sum = 0;
  auto take = [&](float value, int i) {
    if (!(value < INFINITY)) {
      value = -INFINITY;
      sum = NAN;
    }
    if (pick.allowed_count == 0 && i != watch) best.take({value, i});
    if (value > high) {
      sum = sum * __expf(high - value) + 1.0f;
      high = value;
    } else if (value > -INFINITY) {
      sum += __expf(value - high);
    }
  };
  // Four at a time: most groups hold no new maximum (where rivals are wanted, none of the two best) and cost
  // one comparison and four exponentials. The second best is at most `high`, which may be the watched
  // token's.
  const bool two = pick.rivals && pick.allowed_count == 0;
  const int groups = reinterpret_cast<uintptr_t>(row) % 16 == 0 ? vocab / 4 : 0;
  for (int i = threadIdx.x; i < groups; i += kThreads) {
    const float4 v = reinterpret_cast<const float4*>(row)[i];
    const float bar = two ? best.second.value : high;
    if (fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)) < bar && v.x == v.x && v.y == v.y && v.z == v.z &&
        v.w == v.w) {
      sum += __expf(v.x - high) + __expf(v.y - high) + __expf(v.z - high) + __expf(v.w - high);
      continue;
    }
    take(v.x, 4 * i);
    take(v.y, 4 * i + 1);
    take(v.z, 4 * i + 2);
    take(v.w, 4 * i + 3);
  }
  for (int i = 4 * groups + static_cast<int>(threadIdx.x); i < vocab; i += kThreads) take(row[i], i);
  for (int i = threadIdx.x; i < pick.allowed_count; i += kThreads) {
    const int32_t token = allowed[pick.first_allowed + i];
    if (token != watch) best.take({as_score(row[token]), token});
  }
  __shared__ BestTwo bests[kThreads];
  __shared__ float highs[kThreads], sums[kThreads];
  bests[threadIdx.x] = best;
  highs[threadIdx.x] = high;
  sums[threadIdx.x] = sum;
  for (int width = kThreads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x >= width) continue;
    bests[threadIdx.x].join(bests[threadIdx.x + width]);
    const float a = highs[threadIdx.x], b = highs[threadIdx.x + width], top = fmaxf(a, b);
    if (top > -INFINITY)
      sums[threadIdx.x] = sums[threadIdx.x] * __expf(a - top) + sums[threadIdx.x + width] * __expf(b - top);
    else
      sums[threadIdx.x] += sums[threadIdx.x + width];
    highs[threadIdx.x] = top;
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  const auto logprob = [&](float logit) { return logit - highs[0] - logf(sums[0]); };
  GreedyResult& result = out[blockIdx.x];
  Best chosen = bests[0].first;
  float chosen_logit = chosen.value, second = bests[0].second.value;
  if (watch >= 0) {
    const float watched = as_score(row[watch]);
    if (beats({watched + pick.bias, watch}, chosen)) {
      second = chosen.value;
      chosen.token = watch;
      chosen_logit = watched;
    }
    result.watched = logprob(watched);
  } else {
    result.watched = -INFINITY;
  }
  result.token = chosen.token;
  result.logprob = logprob(chosen_logit);
  result.second = logprob(second);
}

}  // namespace

void pick_greedy(const float* logits, const GreedyPick* picks, const int32_t* allowed, int32_t rows,
                 int32_t vocab, GreedyResult* out, cudaStream_t stream) {
  pick_kernel<<<rows, kThreads, 0, stream>>>(logits, picks, allowed, vocab, out);
}

}  // namespace sheaf::cuda

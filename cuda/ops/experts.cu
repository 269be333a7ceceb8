// The way of rows to their experts and back. A warp chooses the experts of a row: its lanes hold the scores
// and look for the highest one choice after the other. A block an expert then finds the places of its rows
// among all choices, so that places follow the order of rows and need no atomics. At 8,192 rows with 8 of 128
// experts and hidden 2,048, choosing reads 4 MB, every block reads the 0.3 MB of all choices twice (67 MB out
// of L2), and the sum reads 268 MB and reads and writes 67 MB each: about 0.1 ms at 4.2 TB/s, against 1 ms
// for the products of the experts.
#include <climits>

#include "cuda/base/device_math.h"
#include "cuda/ops/experts.h"

namespace sheaf::cuda {
namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kRouteWarps = 8, kGatherWarps = 32, kRowThreads = 256;

/// A warp's scores, expert lane + 32 i being `score[i]` of a lane; 0 beyond the last expert.
template <int kEach>
__device__ void make_scores(RouterScores kind, float (&score)[kEach]) {
  if (kind == RouterScores::sigmoid) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) score[i] = 1 / (1 + expf(-score[i]));
    return;
  }
  float most = -INFINITY, sum = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) most = fmaxf(most, score[i]);
  most = warp_most(most);
#pragma unroll
  for (int i = 0; i < kEach; ++i) sum += score[i] = expf(score[i] - most);
  sum = warp_sum(sum);
#pragma unroll
  for (int i = 0; i < kEach; ++i) score[i] /= sum;
}

/// The expert with the highest rank of all lanes, of equal ones the first; in every lane.
template <int kEach>
__device__ int first_highest(const float (&rank)[kEach], int lane) {
  float best = -INFINITY;
  int expert = INT_MAX;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (rank[i] > best) {
      best = rank[i];
      expert = lane + 32 * i;
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(kAll, best, offset);
    const int its_expert = __shfl_xor_sync(kAll, expert, offset);
    if (other > best || (other == best && its_expert < expert)) {
      best = other;
      expert = its_expert;
    }
  }
  return expert;
}

/// A warp a row. `kEach` × 32 is at least the number of experts.
template <int kEach>
__global__ void route_kernel(Experts experts, RouterLogits logits, int32_t rows, Routes routes) {
  const int lane = threadIdx.x % 32;
  const int64_t row = int64_t{blockIdx.x} * kRouteWarps + threadIdx.x / 32;
  if (row >= rows) return;
  float score[kEach], rank[kEach];
  bool finite = true;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = lane + 32 * i;
    const bool there = expert < experts.count;
    score[i] = there ? logits.values[row * logits.stride + expert] : -INFINITY;
    if (there && logits.logit_bias) score[i] += logits.logit_bias[expert];
    finite = finite && (!there || isfinite(score[i]));
  }
  finite = __all_sync(kAll, finite);
  make_scores(experts.scores, score);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = lane + 32 * i;
    rank[i] = expert < experts.count ? score[i] + (logits.bias ? logits.bias[expert] : 0.0f) : -INFINITY;
  }
  float sum = 0, weight = 0;
  int chosen = 0;
  for (int choice = 0; choice < experts.per_token; ++choice) {
    // Any expert will do where no logit is to be trusted: its weight will be NaN.
    const int expert = finite ? first_highest(rank, lane) : choice;
    float its_score = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (expert != lane + 32 * i) continue;
      its_score = score[i];
      rank[i] = -INFINITY;
    }
    its_score = __shfl_sync(kAll, its_score, expert % 32);
    sum += its_score;
    if (choice != lane) continue;
    chosen = expert;
    weight = its_score;
  }
  if (lane >= experts.per_token) return;
  if (!finite) weight = NAN;
  if (experts.normalized) weight /= experts.scores == RouterScores::sigmoid ? sum + 1e-20f : sum;
  const int64_t at = row * experts.per_token + lane;
  routes.experts[at] = chosen;
  routes.weights[at] = weight * experts.factor;
}

/// A block an expert; a warp takes choices [first, end) of all `count`.
__global__ __launch_bounds__(32 * kGatherWarps) void gather_kernel(Routes routes, int32_t count,
                                                                   int32_t per_token) {
  __shared__ int lower_of[kGatherWarps], own_of[kGatherWarps];
  const int32_t* __restrict__ experts = routes.experts;
  const int expert = static_cast<int>(blockIdx.x), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int share = (count + 32 * kGatherWarps - 1) / (32 * kGatherWarps) * 32;
  const int first = warp * share, end = min(first + share, count);
  int lower = 0, own = 0;  // choices of earlier experts, and of this one
#pragma unroll 4
  for (int at = first + lane; at < end; at += 32) {
    const int chosen = experts[at];
    lower += chosen < expert;
    own += chosen == expert;
  }
  lower = __reduce_add_sync(kAll, lower);
  own = __reduce_add_sync(kAll, own);
  if (lane == 0) {
    lower_of[warp] = lower;
    own_of[warp] = own;
  }
  __syncthreads();
  int place = __reduce_add_sync(kAll, lower_of[lane]);
  if (threadIdx.x == 0) {
    routes.offsets[expert] = place;
    if (blockIdx.x == gridDim.x - 1) routes.offsets[gridDim.x] = count;
  }
  place += __reduce_add_sync(kAll, lane < warp ? own_of[lane] : 0);
  for (int at = first + lane; at - lane < end; at += 32) {
    const bool mine = at < end && experts[at] == expert;
    const unsigned ours = __ballot_sync(kAll, mine);
    if (mine) {
      const int to = place + __popc(ours & ((1u << lane) - 1));
      routes.places[at] = to;
      routes.sources[to] = at / per_token;
    }
    place += __popc(ours);
  }
}

/// A block a row of `units` times 16 bytes. `scales` [any rows] and `out_scales` [blocks], or null.
__global__ void copy_kernel(const uint4* in, const int32_t* sources, int32_t units, uint4* out,
                            const float* scales, float* out_scales) {
  const int64_t source = sources[blockIdx.x];
  for (int unit = static_cast<int>(threadIdx.x); unit < units; unit += static_cast<int>(blockDim.x))
    out[int64_t{blockIdx.x} * units + unit] = in[source * units + unit];
  if (scales && threadIdx.x == 0) out_scales[blockIdx.x] = scales[source];
}

/// A block a row, eight columns a thread at once. `offsets` [experts + 1].
__global__ void add_expert_biases_kernel(const float* bias, const int32_t* offsets, int32_t experts,
                                         int32_t cols, bf16* values) {
  const int row = static_cast<int>(blockIdx.x);
  int low = 0, high = experts;  // the last expert whose rows begin at or before this one
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (offsets[middle] <= row ? low : high) = middle;
  }
  for (int col = static_cast<int>(threadIdx.x) * 8; col < cols; col += kRowThreads * 8) {
    alignas(16) float value[8], more[8];
    bf16* const at = values + int64_t{row} * cols + col;
    eight_at(at, value);
    eight_at(bias + int64_t{low} * cols + col, more);
    const auto two = [&](int i) { return pack(value[i] + more[i], value[i + 1] + more[i + 1]); };
    *reinterpret_cast<uint4*>(at) = make_uint4(two(0), two(2), two(4), two(6));
  }
}

/// A block a row, eight columns a thread at once.
template <bool kBiased>
__global__ void sum_kernel(ExpertSums sums, Routes routes, int32_t per_token, int32_t hidden, bool add,
                           float* out) {
  const int64_t row = blockIdx.x;
  const int32_t* places = routes.places + row * per_token;
  const float* weights = routes.weights + row * per_token;
  const float beside = sums.gates ? 1 / (1 + expf(-sums.gates[row * sums.gate_stride])) : 1.0f;
  for (int col = static_cast<int>(threadIdx.x) * 8; col < hidden; col += kRowThreads * 8) {
    alignas(16) float total[8] = {}, values[8];
#pragma unroll 4
    for (int choice = 0; choice < per_token; ++choice) {
      const float weight = weights[choice];
      eight_at(sums.given + int64_t{places[choice]} * hidden + col, values);
      if constexpr (kBiased) {
        alignas(16) float more[8];
        eight_at(sums.bias + int64_t{routes.experts[row * per_token + choice]} * hidden + col, more);
#pragma unroll
        for (int j = 0; j < 8; ++j) values[j] += more[j];
      }
#pragma unroll
      for (int j = 0; j < 8; ++j) total[j] += weight * values[j];
    }
    if (sums.shared) {
      eight_at(sums.shared + row * hidden + col, values);
#pragma unroll
      for (int j = 0; j < 8; ++j) total[j] += beside * values[j];
    }
    float* to = out + row * hidden + col;
    if (add) {
      eight_at(to, values);
#pragma unroll
      for (int j = 0; j < 8; ++j) total[j] += values[j];
    }
#pragma unroll
    for (int j = 0; j < 8; j += 4) *reinterpret_cast<float4*>(to + j) = *reinterpret_cast<float4*>(total + j);
  }
}

}  // namespace

void route(const Experts& experts, const RouterLogits& logits, int32_t rows, const Routes& routes,
           cudaStream_t stream) {
  static_assert(kMostExperts == 32 * 16 && kMostChoices <= 32, "what a warp holds");
  const auto kernel = experts.count <= 128   ? route_kernel<4>
                      : experts.count <= 256 ? route_kernel<8>
                                             : route_kernel<16>;
  kernel<<<static_cast<unsigned>((rows + kRouteWarps - 1) / kRouteWarps), 32 * kRouteWarps, 0, stream>>>(
      experts, logits, rows, routes);
}

void gather_choices(const Experts& experts, int32_t rows, const Routes& routes, cudaStream_t stream) {
  gather_kernel<<<static_cast<unsigned>(experts.count), 32 * kGatherWarps, 0, stream>>>(
      routes, rows * experts.per_token, experts.per_token);
}

void copy_rows(const bf16* in, const int32_t* sources, int64_t count, int32_t cols, bf16* out,
               cudaStream_t stream) {
  copy_kernel<<<static_cast<unsigned>(count), kRowThreads, 0, stream>>>(
      reinterpret_cast<const uint4*>(in), sources, cols / 8, reinterpret_cast<uint4*>(out), nullptr, nullptr);
}

void copy_rows(const Fp8Rows& in, const int32_t* sources, int64_t count, int32_t cols, const Fp8Rows& out,
               cudaStream_t stream) {
  copy_kernel<<<static_cast<unsigned>(count), kRowThreads / 2, 0, stream>>>(
      reinterpret_cast<const uint4*>(in.values), sources, cols / 16, reinterpret_cast<uint4*>(out.values),
      in.scales, out.scales);
}

void add_expert_biases(const float* bias, const int32_t* offsets, int32_t experts, int64_t gathered,
                       int32_t cols, bf16* values, cudaStream_t stream) {
  add_expert_biases_kernel<<<static_cast<unsigned>(gathered), kRowThreads, 0, stream>>>(
      bias, offsets, experts, cols, values);
}

void sum_experts(const ExpertSums& sums, const Routes& routes, int32_t per_token, int32_t rows,
                 int32_t hidden, bool add, float* out, cudaStream_t stream) {
  const auto kernel = sums.bias ? sum_kernel<true> : sum_kernel<false>;
  kernel<<<static_cast<unsigned>(rows), kRowThreads, 0, stream>>>(sums, routes, per_token, hidden, add, out);
}

}  // namespace sheaf::cuda

// The scores of a pick with chains, as core/engine/fuse_chains.cc defines them. The logits of all its rows
// are read once a step (max) or twice (mixture, product), at the speed of memory; for the first token of a
// dynamic contrast two more passes measure how far each chain is from the amateur. Sums have a fixed order,
// so a pick does not depend on its neighbours.
#include "cuda/base/device_math.h"
#include "cuda/ops/ops.h"

namespace sheaf::cuda {
namespace {

constexpr int kThreads = 512, kVoiceThreads = 64;

/// The largest score met and the sum of e^(score - largest).
struct Sum {
  float high, sum;
  __device__ void take(float value) {
    if (value > high) {
      sum = sum * expf(high - value) + 1.0f;
      high = value;
    } else if (value > -INFINITY) {
      sum += expf(value - high);
    }
  }
  __device__ float log() const { return high + logf(sum); }
};

__device__ Sum joined(Sum a, Sum b) {
  const float high = fmaxf(a.high, b.high);
  if (high == -INFINITY) return a;
  return {high, a.sum * expf(a.high - high) + b.sum * expf(b.high - high)};
}

__device__ float joined(float a, float b) {
  return a + b;
}

/// Over the whole block, in one order.
template <class Part>
__device__ Part block_sum(Part own, Part* shared) {
  __syncthreads();
  shared[threadIdx.x] = own;
  for (int width = kThreads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) shared[threadIdx.x] = joined(shared[threadIdx.x], shared[threadIdx.x + width]);
  }
  __syncthreads();
  return shared[0];
}

// Of the picks from `first` on: `logits` [rows, vocab], `chains`, `divergence`, `normalizer` and `out`
// [rows]. `groups` [groups of the step]; fuse_kernel has those to fuse alone.

/// A block a chain: its Jensen-Shannon divergence from the amateur.
__global__ void measure_kernel(const float* logits, int32_t vocab, int32_t first, const ChainPick* chains,
                               float* divergence) {
  const ChainPick chain = chains[blockIdx.x];
  if (!chain.measured) return;
  const float* own = logits + int64_t{blockIdx.x} * vocab;
  const float* amateur = logits + int64_t{chain.amateur - first} * vocab;
  __shared__ Sum sums[kThreads];
  __shared__ float parts[kThreads];
  Sum a{-INFINITY, 0}, b{-INFINITY, 0};
  for (int i = threadIdx.x; i < vocab; i += kThreads) {
    a.take(as_score(own[i]));
    b.take(as_score(amateur[i]));
  }
  const float log_a = block_sum(a, sums).log(), log_b = block_sum(b, sums).log();
  float sum = 0;
  for (int i = threadIdx.x; i < vocab; i += kThreads) {
    const float log_p = as_score(own[i]) - log_a, log_q = as_score(amateur[i]) - log_b;
    const float p = expf(log_p), q = expf(log_q), log_mean = logf((p + q) / 2);
    if (p > 0) sum += p * (log_p - log_mean);
    if (q > 0) sum += q * (log_q - log_mean);
  }
  sum = block_sum(sum, parts);
  if (threadIdx.x == 0) divergence[blockIdx.x] = isfinite(sum) ? fmaxf(0.0f, sum / 2) : 0.0f;
}

/// Of a group, as given or the mean of what was measured.
__device__ float contrast_of(const ChainGroup& group, int32_t first, const float* divergence) {
  if (group.contrast >= 0) return group.contrast;
  float sum = 0;
  for (int k = 1; k <= group.chains; ++k) sum += divergence[group.pick - first + k];
  return sum / static_cast<float>(group.chains);
}

__device__ float contrasted(float chain, float amateur, float contrast) {
  if (contrast == 0) return as_score(chain);
  return as_score((1 + contrast) * as_score(chain) - contrast * as_score(amateur));
}

/// A block a chain: the logarithm of the sum of e^score.
__global__ void normalize_kernel(const float* logits, int32_t vocab, int32_t first, const ChainPick* chains,
                                 const ChainGroup* groups, const float* divergence, float* normalizer) {
  const ChainPick chain = chains[blockIdx.x];
  if (chain.amateur < 0) return;
  const float contrast = contrast_of(groups[chain.group], first, divergence);
  const float* own = logits + int64_t{blockIdx.x} * vocab;
  const float* amateur = logits + int64_t{chain.amateur - first} * vocab;
  __shared__ Sum sums[kThreads];
  Sum sum{-INFINITY, 0};
  for (int i = threadIdx.x; i < vocab; i += kThreads) sum.take(contrasted(own[i], amateur[i], contrast));
  sum = block_sum(sum, sums);
  if (threadIdx.x == 0) normalizer[blockIdx.x] = sum.log();
}

/// A row of blocks a group: its scores, in the place of the amateur's logits.
__global__ void fuse_kernel(float* logits, int32_t vocab, int32_t first, const ChainPick* chains,
                            const ChainGroup* groups, const float* divergence, const float* normalizer,
                            GreedyResult* out) {
  const ChainGroup group = groups[blockIdx.y];
  const int row = group.pick - first;
  const float contrast = contrast_of(group, first, divergence);
  if (blockIdx.x == 0 && threadIdx.x == 0) out[row].contrast = contrast;
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i >= vocab) return;
  float* amateur = logits + int64_t{row} * vocab + i;
  const float at_amateur = *amateur;
  bool sound = at_amateur < INFINITY;  // false also for NaN
  float score = group.aggregate == 0 ? -INFINITY : 0.0f;
  for (int k = 1; k <= group.chains; ++k) {
    const ChainPick& chain = chains[row + k];
    const float at_chain = amateur[int64_t{k} * vocab];
    sound = sound && at_chain < INFINITY;
    const float own = contrasted(at_chain, at_amateur, contrast);
    if (group.aggregate == 0) {
      score = fmaxf(score, own + chain.prior);
      continue;
    }
    const float total = normalizer[row + k];
    if (!isfinite(total)) continue;
    const float weight = expf(chain.log_weight);
    if (group.aggregate == 1)
      score += expf(own - total + chain.log_weight);
    else if (weight > 0)
      score += weight * (own - total);
  }
  *amateur = !sound ? NAN : group.aggregate == 1 ? logf(score) : score;
}

/// A block a group: the chain with the highest score for the token that was picked. What the amateur takes
/// from all chains alike is left out: its logits are gone.
__global__ void voice_kernel(const float* logits, int32_t vocab, int32_t first, const ChainPick* chains,
                             const ChainGroup* groups, const float* normalizer, GreedyResult* out) {
  const ChainGroup group = groups[blockIdx.x];
  const int row = group.pick - first;
  const float scale = 1 + out[row].contrast;
  const int64_t token = out[row].token;
  if (token < 0 || token >= vocab) {  // none was chosen: the logits are not sound, or the host draws
    if (threadIdx.x == 0) out[row].voice = 1;
    return;
  }
  float best = -INFINITY;
  int voice = INT32_MAX;
  for (int k = 1 + static_cast<int>(threadIdx.x); k <= group.chains; k += kVoiceThreads) {
    const ChainPick& chain = chains[row + k];
    const float offset = group.aggregate == 0            ? chain.prior
                         : isfinite(normalizer[row + k]) ? chain.log_weight - normalizer[row + k]
                                                         : -INFINITY;
    const float score = scale * as_score(logits[int64_t{row + k} * vocab + token]) + offset;
    if (score > best || voice == INT32_MAX) {
      best = score;
      voice = k;
    }
  }
  __shared__ float scores[kVoiceThreads];
  __shared__ int voices[kVoiceThreads];
  scores[threadIdx.x] = best;
  voices[threadIdx.x] = voice;
  for (int width = kVoiceThreads / 2; width > 0; width /= 2) {
    __syncthreads();
    const int other = static_cast<int>(threadIdx.x) + width;
    if (static_cast<int>(threadIdx.x) < width &&
        (scores[other] > scores[threadIdx.x] ||
         (scores[other] == scores[threadIdx.x] && voices[other] < voices[threadIdx.x]))) {
      scores[threadIdx.x] = scores[other];
      voices[threadIdx.x] = voices[other];
    }
  }
  if (threadIdx.x == 0) out[row].voice = voices[0];
}

}  // namespace

void find_voices(const ChainInputs& inputs, const float* logits, int32_t first, int32_t vocab,
                 GreedyResult* out, cudaStream_t stream) {
  if (inputs.group_count == 0) return;
  voice_kernel<<<inputs.group_count, kVoiceThreads, 0, stream>>>(logits, vocab, first, inputs.chains + first,
                                                                 inputs.groups + inputs.first_group,
                                                                 inputs.normalizer, out);
}

void fuse_chains(const ChainInputs& inputs, float* logits, int32_t first, int32_t rows, int32_t vocab,
                 GreedyResult* out, cudaStream_t stream) {
  if (inputs.group_count == 0) return;
  const ChainPick* chains = inputs.chains + first;
  if (inputs.measured)
    measure_kernel<<<rows, kThreads, 0, stream>>>(logits, vocab, first, chains, inputs.divergence);
  if (inputs.normalized)
    normalize_kernel<<<rows, kThreads, 0, stream>>>(logits, vocab, first, chains, inputs.groups,
                                                    inputs.divergence, inputs.normalizer);
  const dim3 blocks((vocab + kThreads - 1) / kThreads, inputs.group_count);
  fuse_kernel<<<blocks, kThreads, 0, stream>>>(logits, vocab, first, chains,
                                               inputs.groups + inputs.first_group, inputs.divergence,
                                               inputs.normalizer, out);
}

}  // namespace sheaf::cuda

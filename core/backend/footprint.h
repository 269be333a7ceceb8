#pragma once
#include <algorithm>
#include <cstdint>

#include "core/model/config.h"
#include "core/model/panel.h"
#include "core/model/precision.h"

namespace sheaf {

// What a model takes of a machine, by the formats that the backends use. Backends, engine and estimates all
// read it here.

/// Tokens of a page of keys and values.
constexpr int32_t kPageSize = 16;

constexpr int64_t pages_for(int64_t keys, int32_t page_size = kPageSize) {
  return (keys + page_size - 1) / page_size;
}

/// Tokens whose logits a backend holds at once.
constexpr int32_t kCpuPicksAtOnce = 64, kCudaPicksAtOnce = 1024;

/// What a backend takes of a model, known before its weights are ready.
struct Footprint {
  int64_t kv_bytes_per_token = 0;
  int32_t preferred_tokens = 0;  ///< tokens that a step should hold to keep the machine busy
};

/// fp32, values padded to panels; or 16 bits with a scale for each vector.
Footprint cpu_footprint(const ModelConfig& config, Precision precision = Precision::f32);
/// fp16 keys and values, heads padded; or e4m3, and those of one layer in fp16 beside them.
/// Refuses heads that are too large.
Footprint cuda_footprint(const ModelConfig& config, bool fp8_keys = false);

/// Whether keys are a rotated sum of something and a bias, which FP8 keys keep apart: each has its rotation
/// beside it.
bool rotates_key_biases(const ModelConfig& config);

/// Whether the CUDA engine computes what a block gives apart, before it is added to the residual stream: it
/// is normed or scaled first, or no norm reads the sum.
bool adds_apart(const ModelConfig& config);

/// Rotary tables of a step on the CUDA engine: one more, of zeros, where some layers do not rotate.
int32_t rotary_tables(const ModelConfig& config);

/// Whether the CUDA engine needs room for what a block gives: to add it apart, or because experts are added
/// to what the MLP beside them gave.
bool keeps_blocks(const ModelConfig& config);

/// Width of the widest MLP that all tokens of a layer go through; 0: no layer has one.
int32_t widest_mlp(const ModelConfig& config);

/// Rows of a router's matrix on the CUDA engine: one for each expert, one for the gate of the shared MLP, and
/// zeros up to a multiple of 8.
int32_t router_rows(const Experts& experts);

/// What attention on a Hopper GPU multiplies where the cache is `stored`: keys in FP8 as they are, or
/// expanded first (in order, with a rotated bias, under a cap in heads up to 128, and in very small heads).
KvPrecision attended_precision(const ModelConfig& config, KvPrecision stored, bool reproducible);

/// Bytes that a step of `tokens` tokens takes beside the model and its keys and values, `picks` of them
/// picked at once; partial results of attention are not counted.
int64_t cpu_step_bytes(const ModelConfig& config, int64_t tokens);
int64_t cuda_step_bytes(const ModelConfig& config, int64_t tokens, int64_t picks, bool fp8_keys);

/// The CUDA engine keeps the products of steps of fewer tokens in fp32, which saves a rounding, others in
/// bf16.
constexpr int64_t kWideTokens = 1024;

/// Tokens that a scratch of bf16 values must have room for, so that every step of at most `tokens` fits.
constexpr int64_t scratch_tokens(int64_t tokens) {
  return std::max(tokens, std::min(2 * tokens, 2 * kWideTokens));
}

/// Values of a matrix of packed experts that the CUDA engine expands at once, of `all` values of `count`
/// experts: 268 MB in bf16, but at least one expert.
constexpr int64_t expanded_values(int64_t all, int64_t count) {
  constexpr int64_t room = int64_t{1} << 27;
  const int64_t each = count > 0 ? all / count : 0;
  return each == 0 ? 0 : std::min(all, std::max(room / each, int64_t{1}) * each);
}

/// The size that the CUDA engine pads a head to.
int32_t padded_head_dim(int32_t head_dim);

/// Bytes that keys and values take where the job does not say: of a GPU's free memory, the rest being for
/// activations; of a machine's memory.
constexpr int64_t cuda_pool_bytes(int64_t free_bytes) {
  return free_bytes / 10 * 8;
}
constexpr int64_t cpu_pool_bytes(int64_t memory_bytes) {
  constexpr int64_t most = int64_t{4} << 30;
  return memory_bytes / 4 < most ? memory_bytes / 4 : most;
}

}  // namespace sheaf

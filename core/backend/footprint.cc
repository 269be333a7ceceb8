#include "core/backend/footprint.h"

#include <algorithm>

#include "core/base/error.h"

namespace sheaf {
namespace {

/// Bytes that the experts of a layer take for a token on the CUDA engine, in bf16 or in FP8, whichever takes
/// more.
int64_t cuda_expert_bytes(const ModelConfig& config) {
  const Experts& experts = config.experts;
  if (experts.count == 0) return 0;
  // A choice: its expert, weight, place and source; gate and up, what they make, and what the expert gives.
  const int64_t ffn = experts.ffn, hidden = config.hidden, choice = 4 * int64_t{4} + 2 * (2 * ffn + hidden);
  // What gate and up make has scales in FP8, and so have the rows that are copied for a product.
  const int64_t scales = 4 * (2 + (ffn + 127) / 128);
  // A router reads bf16 beside the rows that products read.
  const int64_t narrow = experts.per_token * (choice + ffn + scales) + hidden + 4;
  return int64_t{4} * router_rows(experts) + std::max(experts.per_token * (choice + 2 * ffn), narrow);
}

}  // namespace

Footprint cpu_footprint(const ModelConfig& config, Precision precision) {
  const int64_t padded = round_up_to_panel(config.head_dim);
  const int64_t bytes = in_whole_numbers(precision) ? 2 * (2 * padded + 6) : 4 * (config.head_dim + padded);
  return {bytes * config.layer_count() * config.kv_heads, 128};
}

Footprint cuda_footprint(const ModelConfig& config, bool fp8_keys) {
  const int64_t dim = padded_head_dim(config.head_dim), layer = 2 * dim, layers = config.layer_count();
  const int64_t head = fp8_keys ? layers * dim + layer : layers * layer;
  const int64_t turns = fp8_keys && rotates_key_biases(config) ? int64_t{4} * config.rotary_dim : 0;
  // 33 pairs of tiles of the products: whole rounds of the 132 multiprocessors of an H100 or H200.
  return {2 * config.kv_heads * head + turns, 33 * 256};
}

int64_t cpu_step_bytes(const ModelConfig& config, int64_t tokens) {
  const int64_t heads = int64_t{2} * (config.heads + config.kv_heads) * config.head_dim;
  const Experts& experts = config.experts;
  // Rows of experts: what they read, what is inside, what they give.
  const int64_t chosen = experts.per_token * (int64_t{2} * config.hidden + int64_t{2} * experts.ffn);
  return 4 * tokens * (int64_t{4} * config.hidden + heads + int64_t{2} * config.ffn + chosen);
}

int64_t cuda_step_bytes(const ModelConfig& config, int64_t tokens, int64_t picks, bool fp8_keys) {
  const int64_t q = int64_t{config.heads} * config.head_dim, kv = int64_t{config.kv_heads} * config.head_dim;
  const int64_t floats = int64_t{config.hidden} * (keeps_blocks(config) ? 2 : 1) +
                         int64_t{rotary_tables(config)} * config.rotary_dim;
  const int64_t queries = int64_t{config.heads} * padded_head_dim(config.head_dim), mlp = widest_mlp(config);
  const int64_t halves = config.hidden + queries + q + mlp, bytes = fp8_keys ? queries : 0;
  const int64_t scratch = q + 2 * kv + 2 * mlp;
  return tokens * (4 * floats + 2 * halves + bytes + cuda_expert_bytes(config)) +
         2 * scratch_tokens(tokens) * scratch + 4 * picks * config.vocab;
}

bool adds_apart(const ModelConfig& config) {
  const Norms& norms = config.norms;
  return norms.post_attention || norms.post_mlp || !norms.pre_attention || !norms.pre_mlp ||
         config.residual_scale != 1;
}

bool keeps_blocks(const ModelConfig& config) {
  return adds_apart(config) || config.experts.shared_ffn > 0;
}

int32_t widest_mlp(const ModelConfig& config) {
  int32_t most = 0;
  for (const LayerConfig& layer : config.layers) most = std::max(most, config.mlp_width(layer));
  return most;
}

int32_t router_rows(const Experts& experts) {
  return (experts.count + (experts.shared_gate ? 1 : 0) + 7) / 8 * 8;
}

int32_t rotary_tables(const ModelConfig& config) {
  const bool plain =
      std::ranges::any_of(config.layers, [](const LayerConfig& layer) { return layer.rope < 0; });
  return static_cast<int32_t>(config.ropes.size()) + (plain ? 1 : 0);
}

bool rotates_key_biases(const ModelConfig& config) {
  return config.biases.k && config.qk_norm == QkNorm::none;
}

KvPrecision attended_precision(const ModelConfig& config, KvPrecision stored, bool reproducible) {
  const bool capped = config.score_cap > 0 && config.head_dim <= 128;
  const bool expanded = reproducible || rotates_key_biases(config) || capped || config.head_dim <= 32 ||
                        config.head_dim % 8 != 0;
  return expanded ? KvPrecision::automatic : stored;
}

int32_t padded_head_dim(int32_t head_dim) {
  for (const int32_t padded : {32, 64, 128, 256})
    if (head_dim <= padded) return padded;
  refuse("heads of {} are too large for the CUDA engine (at most 256); set engine.device: cpu", head_dim);
}

}  // namespace sheaf

#pragma once
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/model/rope.h"
#include "io/model/model_config.h"

/// What config.json and the metadata of a GGUF file say alike. `Fields` has source() and named(key) for
/// messages, and has(), integer() and number().
namespace sheaf {

template <class Fields>
int32_t count(const Fields& fields, const char* key) {
  const int64_t value = fields.integer(key);
  if (value < 1 || value > std::numeric_limits<int32_t>::max())
    refuse("{}: {} is {}; it must be positive", fields.source(), fields.named(key), value);
  return static_cast<int32_t>(value);
}
template <class Fields>
int32_t count(const Fields& fields, const char* key, int32_t fallback) {
  return fields.has(key) ? count(fields, key) : fallback;
}

template <class Fields>
double positive(const Fields& fields, const char* key) {
  const double value = fields.number(key);
  if (!(value > 0) || !std::isfinite(value))
    refuse("{}: {} is {}; it must be positive", fields.source(), fields.named(key), value);
  return value;
}
template <class Fields>
double positive(const Fields& fields, const char* key, double fallback) {
  return fields.has(key) ? positive(fields, key) : fallback;
}

struct SizeKey {
  int32_t ModelConfig::*size;
  const char* hugging_face;
  const char* gguf;
};
constexpr SizeKey kSizeKeys[] = {
    {&ModelConfig::layers, "num_hidden_layers", "block_count"},
    {&ModelConfig::hidden, "hidden_size", "embedding_length"},
    {&ModelConfig::ffn, "intermediate_size", "feed_forward_length"},
    {&ModelConfig::heads, "num_attention_heads", "attention.head_count"},
    {&ModelConfig::kv_heads, "num_key_value_heads", "attention.head_count_kv"},
    {&ModelConfig::context, "max_position_embeddings", "context_length"},
};

/// A model of this family, its sizes as far as both formats name them; `key` is the format's.
template <class Fields>
ModelConfig read_sizes(const Fields& fields, const Family& family, const char* SizeKey::*key) {
  ModelConfig config;
  config.family = family.names.config;
  config.qk_norm = family.qk_norm;
  config.post_norm = family.post_norm;
  for (const SizeKey& known : kSizeKeys)
    config.*known.size = known.size == &ModelConfig::kv_heads ? count(fields, known.*key, config.heads)
                                                              : count(fields, known.*key);
  return config;
}

inline void set_rope(RopeTable table, ModelConfig& config) {
  config.rope_freqs = std::move(table.freqs);
  config.rope_scale = table.scale;
}

}  // namespace sheaf

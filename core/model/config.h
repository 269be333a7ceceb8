#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace sheaf {

/// Where RMS norms stand on the queries and keys.
enum class QkNorm : uint8_t {
  none,
  per_head,  ///< over each head (Qwen3)
  whole,     ///< over the whole projection (OLMo-2)
};

/// One decoder-only transformer. Every family is this description; the differences are its fields.
struct ModelConfig {
  std::string family;  ///< llama, qwen2, qwen3, mistral, phi3, olmo2
  int32_t layers = 0;
  int32_t hidden = 0;    ///< width of the residual stream
  int32_t ffn = 0;       ///< width inside the gated MLP
  int32_t heads = 0;     ///< query heads
  int32_t kv_heads = 0;  ///< key/value heads; divides heads
  int32_t head_dim = 0;  ///< not always hidden / heads (Mistral Nemo, Qwen3)
  int32_t vocab = 0;
  int32_t context = 0;  ///< most positions a prompt may use (also capped by a sliding window)
  float norm_eps = 1e-5f;
  QkNorm qk_norm = QkNorm::none;
  bool post_norm = false;    ///< norms stand after attention and MLP, before the residual sum (OLMo-2)
  bool tied_output = false;  ///< the output projection is the embedding
  int32_t rotary_dim = 0;  ///< leading dimensions of a head that rotate, halves paired (i, i + rotary_dim/2)
  std::vector<float> rope_freqs;  ///< [rotary_dim / 2] radians per position, any scaling already applied
  float rope_scale = 1.0f;        ///< factor on cos and sin (long-rope models)

  int64_t kv_floats_per_token() const { return int64_t{2} * layers * kv_heads * head_dim; }
};

/// Checks that the numbers fit together and are sane (counts, divisibility, rope table size); refuses
/// otherwise, naming `source`.
void check_config(const ModelConfig& config, const std::string& source);

}  // namespace sheaf

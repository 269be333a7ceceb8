#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/activation.h"
#include "core/model/rope.h"

namespace sheaf {

/// Where RMS norms stand on the queries and keys.
enum class QkNorm : uint8_t {
  none,
  per_head,  ///< over each head (Qwen3)
  whole,     ///< over the whole projection (OLMo-2)
};

/// Where RMS norms of the residual stream stand in a layer: before a block, or on what it adds.
struct Norms {
  bool pre_attention = true, post_attention = false;
  bool pre_mlp = true, post_mlp = false;

  bool operator==(const Norms& other) const {
    return pre_attention == other.pre_attention && post_attention == other.post_attention &&
           pre_mlp == other.pre_mlp && post_mlp == other.post_mlp;
  }
};
constexpr Norms kNormsAfter{false, true, false, true};  ///< OLMo-2
constexpr Norms kNormsAround{true, true, true, true};   ///< Gemma 2 and 3, GLM-4

/// Which projections add a bias.
struct Biases {
  bool q = false, k = false, v = false, o = false;
  bool gate = false, up = false, down = false;
  bool output = false;
};
constexpr Biases kQkvBiases{true, true, true};  ///< Qwen2

/// What a router makes of its logits, one for each expert.
enum class RouterScores : uint8_t {
  softmax,  ///< over all experts
  sigmoid,  ///< of each by itself (GLM-4.5)
};

/// A mixture of experts: MLPs of which each token goes through a few, with weights.
struct Experts {
  int32_t count = 0;         ///< 0: the model has none
  int32_t per_token = 0;     ///< experts of a token: the highest scores, and of equal ones the first expert
  int32_t ffn = 0;           ///< width inside one of them
  int32_t shared_ffn = 0;    ///< width inside an MLP that every token goes through besides; 0: none
  bool shared_gate = false;  ///< what that gives is weighed by sigmoid(its gate · x)
  RouterScores scores = RouterScores::softmax;
  bool choice_bias = false;  ///< a bias on the scores, for the choice alone
  bool logit_bias = false;   ///< a bias on the router's logits (gpt-oss); not with choice_bias
  bool biases = false;       ///< gate, up and down of each expert add a bias
  bool normalized = false;   ///< weights are scores divided by the sum over the chosen ones
  float factor = 1;          ///< on the weights
};

/// What may differ from layer to layer.
struct LayerConfig {
  int32_t window = 0;    ///< a token sees keys less than so many positions before its own; 0: all keys
  int32_t rope = 0;      ///< index into ModelConfig::ropes; -1: queries and keys are not rotated
  bool experts = false;  ///< its MLP is a mixture of experts
};

/// One decoder-only transformer. Every family is this description; the differences are its fields.
struct ModelConfig {
  std::string family;  ///< llama, qwen2, …: a word for people; what is computed follows from the other fields
  std::vector<LayerConfig> layers;
  int32_t hidden = 0;    ///< width of the residual stream
  int32_t ffn = 0;       ///< width inside the gated MLP of layers without experts
  int32_t heads = 0;     ///< query heads
  int32_t kv_heads = 0;  ///< key/value heads; divides heads
  int32_t head_dim = 0;  ///< not always hidden / heads (Mistral Nemo, Qwen3)
  int32_t vocab = 0;
  int32_t context = 0;  ///< most positions a prompt may use
  float norm_eps = 1e-5f;
  QkNorm qk_norm = QkNorm::none;
  Norms norms;
  Biases biases;
  Activation activation = Activation::silu;
  bool sinks = false;  ///< each query head has one more logit in its softmax, of no key
  Experts experts;
  bool tied_output = false;  ///< the output projection is the embedding

  float embedding_scale = 1;  ///< factor on the embedding's rows
  float score_scale = 0;      ///< factor on attention scores; 0: 1 / sqrt(head_dim)
  float residual_scale = 1;   ///< factor on what attention and MLP add to the residual stream
  float logit_scale = 1;      ///< factor on logits
  float score_cap = 0;        ///< scores become cap · tanh(score / cap); 0: they stay
  float logit_cap = 0;        ///< logits, scaled, become cap · tanh(logit / cap); 0: they stay

  int32_t rotary_dim = 0;  ///< leading dimensions of a head that rotate, halves paired (i, i + rotary_dim/2)
  std::vector<RopeTable> ropes;       ///< each of rotary_dim / 2 pairs; layers say which is theirs
  int32_t long_context = 0;           ///< most positions with long_ropes instead; 0: the model has none
  std::vector<RopeTable> long_ropes;  ///< long-rope models: as many as ropes, for prompts beyond `context`

  /// Width inside the MLP of a layer that all tokens go through; 0: it has none.
  int32_t mlp_width(const LayerConfig& layer) const { return layer.experts ? experts.shared_ffn : ffn; }
  int32_t layer_count() const { return static_cast<int32_t>(layers.size()); }
  int64_t kv_floats_per_token() const { return int64_t{2} * layer_count() * kv_heads * head_dim; }
  float score_factor() const {
    return score_scale > 0 ? score_scale : 1.0f / std::sqrt(static_cast<float>(head_dim));
  }
};

/// Layers that a model may have.
constexpr int32_t kMostLayers = 4096;

/// Makes a model take prompts of up to `positions` positions: a long-rope model that needs its long tables
/// for them has only those from then on, for short prompts too, so that no answer depends on its neighbours.
/// Refuses more positions than the model has, naming `source`.
void use_context(ModelConfig& config, int32_t positions, const std::string& source);

/// Checks that the numbers fit together and are sane (counts, divisibility, rope tables); refuses
/// otherwise, naming `source`.
void check_config(const ModelConfig& config, const std::string& source);

}  // namespace sheaf

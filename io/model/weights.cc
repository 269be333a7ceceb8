#include "io/model/weights.h"

#include "core/base/error.h"
#include "io/model/quantized_weights.h"

namespace sheaf {
namespace {

/// What the tensors of one layer are called; an adapter always uses the Hugging Face names.
struct Names {
  const char* layer;  ///< before the number
  const char* attention_norm;
  const char* post_attention_norm;  ///< of post-norm families
  const char* q;
  const char* k;
  const char* v;
  const char* qkv;
  const char* q_norm;
  const char* k_norm;
  const char* o;
  const char* mlp_norm;
  const char* post_mlp_norm;
  const char* gate;
  const char* up;
  const char* gate_up;
  const char* down;
  const char* embedding;
  const char* final_norm;
  const char* output;
};

constexpr Names hugging_face{.layer = "model.layers.",
                             .attention_norm = "input_layernorm",
                             .post_attention_norm = "post_attention_layernorm",
                             .q = "self_attn.q_proj",
                             .k = "self_attn.k_proj",
                             .v = "self_attn.v_proj",
                             .qkv = "self_attn.qkv_proj",
                             .q_norm = "self_attn.q_norm",
                             .k_norm = "self_attn.k_norm",
                             .o = "self_attn.o_proj",
                             .mlp_norm = "post_attention_layernorm",
                             .post_mlp_norm = "post_feedforward_layernorm",
                             .gate = "mlp.gate_proj",
                             .up = "mlp.up_proj",
                             .gate_up = "mlp.gate_up_proj",
                             .down = "mlp.down_proj",
                             .embedding = "model.embed_tokens",
                             .final_norm = "model.norm",
                             .output = "lm_head"};

constexpr Names gguf{.layer = "blk.",
                     .attention_norm = "attn_norm",
                     .post_attention_norm = "post_attention_norm",
                     .q = "attn_q",
                     .k = "attn_k",
                     .v = "attn_v",
                     .qkv = "attn_qkv",
                     .q_norm = "attn_q_norm",
                     .k_norm = "attn_k_norm",
                     .o = "attn_output",
                     .mlp_norm = "ffn_norm",
                     .post_mlp_norm = "post_ffw_norm",
                     .gate = "ffn_gate",
                     .up = "ffn_up",
                     .gate_up = "ffn_up",
                     .down = "ffn_down",
                     .embedding = "token_embd",
                     .final_norm = "output_norm",
                     .output = "output"};

class Loader {
 public:
  Loader(TensorMap& tensors, const FileConfig& description, TensorNaming naming, Adapter* adapter,
         Model& model)
      : tensors_(tensors),
        family_(*description.family),
        quantization_(description.quantization),
        paired_(naming == TensorNaming::gguf && family_.paired_gguf),
        names_(naming == TensorNaming::gguf ? gguf : hugging_face),
        adapter_(adapter),
        model_(model),
        config_(model.config) {}

  void load() {
    model_.embedding = tensors_.take(weight(names_.embedding), config_.vocab, config_.hidden);
    model_.final_norm = tensors_.take_vector(weight(names_.final_norm), config_.hidden);
    if (config_.tied_output) {
      model_.output = model_.embedding;
      tensors_.ignore(weight(names_.output));
    } else {
      model_.output = take(names_.output, config_.vocab, config_.hidden);
      if (adapter_ != nullptr) adapter_->attach(hugging_face.output, model_.output);
    }
    for (int32_t i = 0; i < config_.layers; ++i) load_layer(i);
    for (const char* name : {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"})
      tensors_.ignore(name);
    tensors_.refuse_unused();
    if (adapter_ != nullptr) adapter_->refuse_unused();
  }

 private:
  static std::string weight(const std::string& name) { return name + ".weight"; }
  std::string in_layer(const char* name) const { return names_.layer + std::to_string(layer_) + "." + name; }

  Matrix take(const std::string& module, int64_t rows, int64_t cols) {
    if (quantization_) {
      if (auto matrix = take_quantized(tensors_, *quantization_, module, rows, cols)) {
        // Some programs write a bias for every layer that they quantize.
        tensors_.ignore_zeros(module + ".bias");
        return *matrix;
      }
    }
    return tensors_.take(weight(module), rows, cols);
  }
  Matrix linear(const char* name, const char* module, int64_t rows, int64_t cols, bool heads = false) {
    Matrix matrix = take(in_layer(name), rows, cols);
    if (heads && paired_) matrix.rope_head_dim = config_.head_dim;
    if (adapter_ != nullptr)
      adapter_->attach(hugging_face.layer + std::to_string(layer_) + "." + module, matrix);
    return matrix;
  }
  Matrix norm(const char* name, int64_t size) { return tensors_.take_vector(weight(in_layer(name)), size); }
  Matrix bias(const char* name, int64_t size) { return tensors_.take_vector(in_layer(name) + ".bias", size); }

  void load_layer(int32_t number) {
    layer_ = number;
    LayerWeights layer;
    const int64_t hidden = config_.hidden;
    const int64_t queries = int64_t{config_.heads} * config_.head_dim;
    const int64_t keys = int64_t{config_.kv_heads} * config_.head_dim;
    const bool post = config_.post_norm;
    layer.attention_norm = norm(post ? names_.post_attention_norm : names_.attention_norm, hidden);
    layer.mlp_norm = norm(post ? names_.post_mlp_norm : names_.mlp_norm, hidden);
    if (family_.fused) {
      const Matrix qkv = linear(names_.qkv, hugging_face.qkv, queries + 2 * keys, hidden);
      layer.q = qkv.slice(0, queries, qkv.name + ":q");
      layer.k = qkv.slice(queries, keys, qkv.name + ":k");
      layer.v = qkv.slice(queries + keys, keys, qkv.name + ":v");
      const Matrix both = linear(names_.gate_up, hugging_face.gate_up, int64_t{2} * config_.ffn, hidden);
      layer.gate = both.slice(0, config_.ffn, both.name + ":gate");
      layer.up = both.slice(config_.ffn, config_.ffn, both.name + ":up");
    } else {
      layer.q = linear(names_.q, hugging_face.q, queries, hidden, true);
      layer.k = linear(names_.k, hugging_face.k, keys, hidden, true);
      layer.v = linear(names_.v, hugging_face.v, keys, hidden);
      layer.gate = linear(names_.gate, hugging_face.gate, config_.ffn, hidden);
      layer.up = linear(names_.up, hugging_face.up, config_.ffn, hidden);
    }
    if (family_.qkv_bias) {
      layer.q_bias = bias(names_.q, queries);
      layer.k_bias = bias(names_.k, keys);
      layer.v_bias = bias(names_.v, keys);
    }
    if (config_.qk_norm != QkNorm::none) {
      const bool whole = config_.qk_norm == QkNorm::whole;
      layer.q_norm = norm(names_.q_norm, whole ? queries : config_.head_dim);
      layer.k_norm = norm(names_.k_norm, whole ? keys : config_.head_dim);
    }
    layer.o = linear(names_.o, hugging_face.o, hidden, queries);
    layer.down = linear(names_.down, hugging_face.down, hidden, config_.ffn);
    // Old checkpoints keep the rope table, which is derived from the configuration.
    tensors_.ignore(in_layer("self_attn.rotary_emb.inv_freq"));
    model_.layers.push_back(std::move(layer));
  }

  TensorMap& tensors_;
  const Family& family_;
  const std::optional<Quantization>& quantization_;
  bool paired_;
  const Names& names_;
  Adapter* adapter_;
  Model& model_;
  const ModelConfig& config_;
  int32_t layer_ = 0;
};

}  // namespace

void load_weights(TensorMap& tensors, const FileConfig& description, TensorNaming naming, Adapter* adapter,
                  Model& model) {
  Loader(tensors, description, naming, adapter, model).load();
}

}  // namespace sheaf

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/model/shapes.h"
#include "core/tokenizer/chat_template.h"
#include "io/model/model_files.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

struct TensorCount {
  int64_t tensors = 0;
  int64_t bytes = 0;
};

/// The model's tensors by type, each tensor of the file once: parts of a fused one share a name before the
/// colon, a tied output is the embedding. Adds up all parameters.
ordered_json count_tensors(const Model& model, int64_t& parameters) {
  std::map<std::string, TensorCount> types;
  std::set<std::string> seen;
  const auto add = [&](const Matrix& matrix) {
    if (matrix.empty()) return;
    TensorCount& count = types[dtype_name(matrix.dtype)];
    if (seen.insert(matrix.name.substr(0, matrix.name.find(':'))).second) ++count.tensors;
    count.bytes += matrix.rows * matrix.row_bytes();
    parameters += matrix.rows * matrix.cols;
  };
  add(model.embedding);
  add(model.final_norm);
  if (!model.config.tied_output) add(model.output);
  add(model.output_bias);
  for (const LayerWeights& layer : model.layers) {
    for (const Matrix* matrix : layer.linears()) add(*matrix);
    for (const Matrix* vector : layer.vectors()) add(*vector);
  }
  ordered_json list = ordered_json::array();
  for (const auto& [type, count] : types)
    list.push_back({{"type", type}, {"tensors", count.tensors}, {"bytes", count.bytes}});
  return list;
}

/// Sliding windows and how many layers have each.
ordered_json count_windows(const ModelConfig& config) {
  std::map<int32_t, int64_t> layers;
  for (const LayerConfig& layer : config.layers)
    if (layer.window > 0) ++layers[layer.window];
  ordered_json list = ordered_json::array();
  for (const auto& [window, count] : layers) list.push_back({{"window", window}, {"layers", count}});
  return list;
}

ordered_json describe_experts(const Experts& experts) {
  if (experts.count == 0) return nullptr;
  return {{"count", experts.count},
          {"per_token", experts.per_token},
          {"ffn", experts.ffn},
          {"shared_ffn", experts.shared_ffn}};
}

constexpr const char* kQkNormNames[] = {"none", "per head", "whole"};

ordered_json token(const Tokenizer& tokenizer, TokenId id) {
  return {{"id", id}, {"text", tokenizer.decode({&id, 1}, false)}};
}

}  // namespace

ordered_json describe_model(const std::string& path) {
  const Model model = load_model(path);
  const ModelConfig& config = model.config;
  int64_t parameters = 0;
  const ordered_json tensor_types = count_tensors(model, parameters);
  return {
      {"family", config.family},
      {"layers", config.layer_count()},
      {"hidden", config.hidden},
      {"ffn", config.ffn},
      {"heads", config.heads},
      {"kv_heads", config.kv_heads},
      {"head_dim", config.head_dim},
      {"rotary_dim", config.rotary_dim},
      {"vocab", config.vocab},
      {"context", config.context},
      {"long_context", std::max(config.context, config.long_context)},
      {"windows", count_windows(config)},
      {"qk_norm", kQkNormNames[static_cast<size_t>(config.qk_norm)]},
      {"norms",
       {{"pre_attention", config.norms.pre_attention},
        {"post_attention", config.norms.post_attention},
        {"pre_mlp", config.norms.pre_mlp},
        {"post_mlp", config.norms.post_mlp}}},
      {"experts", describe_experts(config.experts)},
      {"sinks", config.sinks},
      {"tied_output", config.tied_output},
      {"parameters", parameters},
      {"active_parameters", parameters - idle_weights(config)},
      {"tensor_types", tensor_types},
      {"kv_bytes_per_token", config.kv_floats_per_token() * int64_t{sizeof(float)}},
      {"fp32_bytes", parameters * int64_t{sizeof(float)}},
      {"notice", model.notice},
  };
}

ordered_json describe_tokenizer(const std::string& path) {
  const LoadedTokenizer loaded = load_tokenizer(path);
  const Tokenizer& tokenizer = *loaded.tokenizer;
  constexpr int64_t shown_specials = 8;
  ordered_json about{{"kind", tokenizer.describe()}, {"vocab", tokenizer.vocab_size()}};
  about["bos"] = tokenizer.bos ? token(tokenizer, *tokenizer.bos) : ordered_json();
  about["eos"] = tokenizer.eos ? token(tokenizer, *tokenizer.eos) : ordered_json();
  about["starts_with_bos"] = tokenizer.starts_with_bos;
  about["end_tokens"] = ordered_json::array();
  for (const TokenId id : tokenizer.end_tokens) about["end_tokens"].push_back(token(tokenizer, id));
  int64_t specials = 0;
  about["specials"] = 0;
  about["first_specials"] = ordered_json::array();
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.is_special(id)) continue;
    if (++specials <= shown_specials) about["first_specials"].push_back(token(tokenizer, id));
  }
  about["specials"] = specials;
  const ChatChoice choice = choose_chat_template(loaded.chat_template, tokenizer);
  about["chat_template"] = choice.chat.name;
  about["chat_template_why"] = choice.why;
  return about;
}

}  // namespace sheaf

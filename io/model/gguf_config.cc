#include <algorithm>
#include <utility>

#include "io/model/family.h"
#include "io/model/model_config.h"

namespace sheaf {
namespace {

void refuse_unsupported(const GgufFields& fields, const Family& family) {
  const auto reads = [&](std::string_view key) {
    return std::ranges::any_of(family.gguf_keys,
                               [&](const char* own) { return own != nullptr && own == key; });
  };
  struct Neutral {
    const char* key;
    double value;
  };
  for (const auto& [key, value] : {Neutral{"expert_count", 0},
                                   {"attn_logit_softcapping", 0},
                                   {"final_logit_softcapping", 0},
                                   {"attention.clamp_kqv", 0},
                                   {"attention.max_alibi_bias", 0},
                                   {"attention.scale", 0},
                                   {"logit_scale", 1},
                                   {"embedding_scale", 1},
                                   {"residual_scale", 1}}) {
    if (fields.has(key) && fields.number(key) != value && !reads(key))
      refuse("{}: {} is {}, which is not supported", fields.source(), fields.named(key), fields.number(key));
  }
  for (const char* name : {"rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor",
                           "rope.scaling.yarn_log_multiplier"}) {
    if (fields.has(name)) refuse("{}: {} is not supported", fields.source(), fields.named(name));
  }
}

/// A tensor of one divisor per rotating pair, or nothing.
std::vector<float> divisors(const GgufFile& gguf, const char* name, int32_t pairs) {
  const FileTensor* tensor = gguf.find_tensor(name);
  if (tensor == nullptr) return {};
  if (tensor->dtype != DType::f32)
    refuse("{}: tensor {} has type {}; it must be F32", gguf.path(), name, tensor->type);
  if (tensor->shape != std::vector<int64_t>{pairs})
    refuse("{}: tensor {} must have the shape [{}]", gguf.path(), name, pairs);
  std::vector<float> values(static_cast<size_t>(pairs));
  to_f32(DType::f32, tensor->data, pairs, values.data());
  for (const float value : values) {
    if (!(value > 0) || !std::isfinite(value))
      refuse("{}: tensor {} contains {}; its numbers must be positive", gguf.path(), name, value);
  }
  return values;
}

RopeTable read_table(const GgufFields& fields, ModelConfig& config, bool truncate) {
  const GgufFile& gguf = fields.gguf();
  const int32_t dim = config.rotary_dim;
  const double base = positive(fields, "rope.freq_base", 10000);
  if (!(base > 1))
    refuse("{}: {} is {}; it must be above 1", gguf.path(), fields.named("rope.freq_base"), base);
  const std::string_view type = gguf.string(fields.key("rope.scaling.type"), "none");
  const double factor = positive(fields, "rope.scaling.factor", positive(fields, "rope.scale_linear", 1));
  const double original = positive(fields, "rope.scaling.original_context_length", config.context);
  const double attention_factor = positive(fields, "rope.scaling.attn_factor", 1);

  const auto longer = divisors(gguf, "rope_factors_long.weight", dim / 2);
  if (const auto shorter = divisors(gguf, "rope_factors_short.weight", dim / 2); !shorter.empty()) {
    RopeTable table = divided_rope(base, dim, shorter);
    table.scale = static_cast<float>(attention_factor);
    // The short factors hold up to the original context, the long ones for all positions of longer prompts.
    if (original < config.context) {
      const int32_t whole = std::exchange(config.context, static_cast<int32_t>(original));
      if (longer.empty()) return table;
      config.long_context = whole;
      config.long_ropes = {divided_rope(base, dim, longer)};
      config.long_ropes[0].scale = table.scale;
    }
    return table;
  }
  const auto per_pair = divisors(gguf, "rope_freqs.weight", dim / 2);
  if (type == "yarn" && per_pair.empty()) {
    YarnScaling scaling{.factor = factor,
                        .original_context = original,
                        .attention_factor = yarn_attention_factor(factor) * attention_factor};
    scaling.beta_fast = positive(fields, "rope.scaling.yarn_beta_fast", scaling.beta_fast);
    scaling.beta_slow = positive(fields, "rope.scaling.yarn_beta_slow", scaling.beta_slow);
    scaling.truncate = truncate;
    return yarn_rope(base, dim, scaling);
  }
  if (type != "none" && type != "linear") {
    refuse(
        "{}: rope scaling {} is not supported here (supported: none, linear, yarn, and longrope with its "
        "factors)",
        gguf.path(), shown(type));
  }
  RopeTable table = per_pair.empty() ? plain_rope(base, dim) : divided_rope(base, dim, per_pair);
  table.scale = static_cast<float>(attention_factor);
  if (type == "linear" || !fields.has("rope.scaling.type")) {
    for (float& frequency : table.freqs) frequency /= static_cast<float>(factor);
  }
  return table;
}

/// A window that the family did not take.
void refuse_unread_window(const GgufFields& fields, const ModelConfig& config) {
  const char* key = "attention.sliding_window";
  const uint64_t window = fields.gguf().uint(fields.key(key), 0);
  const bool taken =
      std::ranges::any_of(config.layers, [](const LayerConfig& layer) { return layer.window > 0; });
  if (window > 0 && std::cmp_less(window, std::max(config.context, config.long_context)) && !taken)
    refuse("{}: {} is {}, which is not supported for {}", fields.source(), fields.named(key), window,
           config.family);
}

ModelConfig read_sizes(const GgufFields& fields) {
  const GgufFile& gguf = fields.gguf();
  ModelConfig config;
  const int32_t layers = count(fields, "block_count");
  if (layers > kMostLayers)
    refuse("{}: {} is {}, at most {} are supported", gguf.path(), fields.named("block_count"), layers,
           kMostLayers);
  config.layers.resize(static_cast<size_t>(layers));
  config.hidden = count(fields, "embedding_length");
  config.ffn = count(fields, "feed_forward_length");
  config.heads = count(fields, "attention.head_count");
  config.kv_heads = count(fields, "attention.head_count_kv", config.heads);
  config.context = count(fields, "context_length");
  config.head_dim = count(fields, "attention.key_length", std::max(config.hidden / config.heads, 1));
  const int32_t value_dim = count(fields, "attention.value_length", config.head_dim);
  if (value_dim != config.head_dim)
    refuse("{}: keys have {} dimensions, but values {}; only equal sizes are supported", gguf.path(),
           config.head_dim, value_dim);
  if (config.head_dim > 4096)
    refuse("{}: heads have {} dimensions; at most 4096 are supported", gguf.path(), config.head_dim);
  config.norm_eps = static_cast<float>(positive(fields, "attention.layer_norm_rms_epsilon"));
  config.tied_output = gguf.find_tensor("output.weight") == nullptr;
  const FileTensor* embedding = gguf.find_tensor("token_embd.weight");
  if (embedding == nullptr)
    refuse("{}: the file has no tensor token_embd.weight; the file is damaged or contains only a vocabulary",
           gguf.path());
  if (embedding->shape.size() != 2 || embedding->shape[0] > std::numeric_limits<int32_t>::max()) {
    refuse("{}: tensor token_embd.weight must be a matrix of a plausible size", gguf.path());
  }
  config.vocab = static_cast<int32_t>(embedding->shape[0]);
  return config;
}

}  // namespace

void read_gguf_rope(const GgufFields& file, ModelConfig& config, bool partial, bool truncate) {
  config.rotary_dim = count(file, "rope.dimension_count", config.head_dim);
  if (config.rotary_dim > config.head_dim || config.rotary_dim % 2 != 0 ||
      (!partial && config.rotary_dim != config.head_dim)) {
    refuse("{}: {} of {} dimensions are rotary, which is not supported for {}", file.source(),
           config.rotary_dim, config.head_dim, config.family);
  }
  config.ropes = {read_table(file, config, truncate)};
}

void read_gguf_experts(const GgufFields& file, ModelConfig& config, bool normalized) {
  if (file.gguf().uint(file.key("expert_count"), 0) == 0) return;
  Experts& experts = config.experts;
  experts.count = count(file, "expert_count");
  experts.per_token = count(file, "expert_used_count");
  experts.factor = factor(file, "expert_weights_scale", 1);
  experts.normalized = file.has("expert_weights_norm") ? file.number("expert_weights_norm") != 0 : normalized;
  constexpr const char* kFunction = "expert_gating_func";
  if (const int64_t function = file.has(kFunction) ? file.integer(kFunction) : 1; function == 2)
    experts.scores = RouterScores::sigmoid;
  else if (function == 3)
    experts.normalized = true;
  else if (function != 1)
    refuse("{}: {} is {}; supported are 1 (softmax), 2 (sigmoid) and 3 (softmax of the chosen)",
           file.source(), file.named(kFunction), function);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const auto find = [&](const char* name) {
      return file.gguf().find_tensor(fmt::format("blk.{}.{}", i, name));
    };
    const FileTensor* gates = find("ffn_gate_exps.weight");
    if (gates == nullptr) continue;
    if (gates->shape.size() != 3 || gates->shape[1] > std::numeric_limits<int32_t>::max())
      refuse("{}: tensor blk.{}.ffn_gate_exps.weight must have three dimensions of a plausible size",
             file.source(), i);
    config.layers[i].experts = true;
    experts.ffn = static_cast<int32_t>(gates->shape[1]);
    experts.choice_bias = find("exp_probs_b.bias") != nullptr;
    experts.shared_gate = find("ffn_gate_inp_shexp.weight") != nullptr;
    const FileTensor* shared = find("ffn_gate_shexp.weight");
    if (shared != nullptr && shared->shape.size() == 2 && shared->shape[0] <= 1 << 22)
      experts.shared_ffn = static_cast<int32_t>(shared->shape[0]);
  }
  if (std::ranges::none_of(config.layers, [](const LayerConfig& layer) { return layer.experts; }))
    refuse("{}: {} is {}, but no layer has a tensor ffn_gate_exps.weight", file.source(),
           file.named("expert_count"), experts.count);
}

std::vector<bool> sliding_gguf_layers(const GgufFields& file, const ModelConfig& config, uint64_t period) {
  const char* pattern = "attention.sliding_window_pattern";
  std::vector<bool> sliding(config.layers.size());
  if (file.gguf().is_array(file.key(pattern))) {
    const std::vector<int64_t> listed = file.gguf().ints(file.key(pattern));
    if (listed.size() != sliding.size())
      refuse("{}: {} has {} entries; there must be one for each of the {} layers", file.source(),
             file.named(pattern), listed.size(), sliding.size());
    for (size_t i = 0; i < sliding.size(); ++i) sliding[i] = listed[i] != 0;
    return sliding;
  }
  period = file.gguf().uint(file.key(pattern), period);
  for (size_t i = 0; i < sliding.size(); ++i) sliding[i] = period == 0 || (i + 1) % period != 0;
  return sliding;
}

void read_gguf_local_rope(const GgufFields& file, ModelConfig& config, uint64_t period, double base) {
  config.ropes.push_back(plain_rope(positive(file, "rope.freq_base_swa", base), config.rotary_dim));
  const std::vector<bool> sliding = sliding_gguf_layers(file, config, period);
  for (size_t i = 0; i < sliding.size(); ++i)
    if (sliding[i]) config.layers[i].rope = 1;
}

void read_gguf_windows(const GgufFields& file, ModelConfig& config, uint64_t period) {
  const uint64_t window = file.gguf().uint(file.key("attention.sliding_window"), 0);
  if (window == 0 || std::cmp_greater_equal(window, std::max(config.context, config.long_context))) return;
  const std::vector<bool> sliding = sliding_gguf_layers(file, config, period);
  for (size_t i = 0; i < sliding.size(); ++i)
    if (sliding[i]) config.layers[i].window = static_cast<int32_t>(window);
}

FileConfig read_gguf_config(const GgufFile& gguf) {
  const std::string_view arch = gguf.string("general.architecture");
  const Family* family = find_family(arch, &Family::gguf);
  if (family == nullptr) {
    refuse("{}: architecture {} is not supported (supported: {})", gguf.path(), shown(arch),
           family_names(&Family::gguf));
  }
  if (gguf.uint("split.count", 1) > 1) {
    refuse("{}: this is one of {} parts; merge them into one file first (llama-gguf-split --merge)",
           gguf.path(), gguf.uint("split.count"));
  }
  const GgufFields fields(gguf, arch);
  refuse_unsupported(fields, *family);
  ModelConfig config = read_sizes(fields);
  config.family = family->name;
  family->describe(config);
  family->read_gguf(fields, config);
  refuse_unread_window(fields, config);
  check_config(config, gguf.path());
  return {config, family};
}

}  // namespace sheaf

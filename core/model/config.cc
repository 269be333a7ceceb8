#include "core/model/config.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace sheaf {
namespace {

void check_count(const std::string& source, const char* what, int64_t value, int64_t most) {
  if (value < 1 || value > most) refuse("{}: {} is {}; it must be from 1 to {}", source, what, value, most);
}

void check_rope(const ModelConfig& config, const RopeTable& rope, const std::string& source) {
  if (rope.freqs.size() != static_cast<size_t>(config.rotary_dim) / 2) {
    refuse("{}: there are {} rotary frequencies; there must be {}", source, rope.freqs.size(),
           config.rotary_dim / 2);
  }
  for (const float frequency : rope.freqs) {
    if (!std::isfinite(frequency)) refuse("{}: a rotary frequency is {}", source, frequency);
  }
  if (!std::isfinite(rope.scale) || rope.scale <= 0) {
    refuse("{}: the rotary scale is {}; it must be positive", source, rope.scale);
  }
}

void check_factors(const ModelConfig& config, const std::string& source) {
  struct Factor {
    const char* what;
    float value;
    bool may_be_zero;
  };
  for (const auto& [what, value, may_be_zero] :
       {Factor{"factor on the embedding", config.embedding_scale, false},
        Factor{"factor on attention scores", config.score_scale, true},
        Factor{"factor on residual sums", config.residual_scale, false},
        Factor{"factor on logits", config.logit_scale, false},
        Factor{"cap on attention scores", config.score_cap, true},
        Factor{"cap on logits", config.logit_cap, true}})
    if (!std::isfinite(value) || value < 0 || (value == 0 && !may_be_zero))
      refuse("{}: the {} is {}; it must be positive", source, what, value);
}

void check_experts(const ModelConfig& config, const std::string& source) {
  const Experts& experts = config.experts;
  const bool some =
      std::ranges::any_of(config.layers, [](const LayerConfig& layer) { return layer.experts; });
  if (some && experts.count == 0) fail("{}: the number of experts is 0, but a layer has experts", source);
  if (!some && experts.count > 0)
    refuse("{}: there are {} experts, but no layer has them", source, experts.count);
  if (!some) return;
  check_count(source, "the number of experts", experts.count, 65536);
  check_count(source, "the number of experts of a token", experts.per_token, 256);
  check_count(source, "the MLP size of an expert", experts.ffn, 1 << 22);
  if (experts.choice_bias && experts.logit_bias)
    fail("{}: the router has a bias on logits and one for the choice", source);
  if (experts.per_token > experts.count)
    refuse("{}: a token goes through {} experts, but there are only {}", source, experts.per_token,
           experts.count);
  if (experts.shared_ffn < 0 || experts.shared_ffn > 1 << 22)
    refuse("{}: the MLP size of the shared experts is {}; it must be from 1 to {}", source,
           experts.shared_ffn, 1 << 22);
  if (!std::isfinite(experts.factor) || experts.factor <= 0)
    refuse("{}: the factor on the experts' weights is {}; it must be positive", source, experts.factor);
}

}  // namespace

void use_context(ModelConfig& config, int32_t positions, const std::string& source) {
  const int32_t most = std::max(config.context, config.long_context);
  if (positions < 1 || positions > most)
    refuse("{}: a context of {} positions was asked for; it must be from 1 to {}", source, positions, most);
  if (positions > config.context) config.ropes = config.long_ropes;
  config.context = positions;
  config.long_context = 0;
  config.long_ropes.clear();
}

void check_config(const ModelConfig& config, const std::string& source) {
  check_count(source, "the number of layers", config.layer_count(), kMostLayers);
  check_count(source, "the hidden size", config.hidden, 1 << 20);
  check_count(source, "the MLP size", config.ffn, 1 << 22);
  check_count(source, "the number of heads", config.heads, 4096);
  check_count(source, "the number of key/value heads", config.kv_heads, 4096);
  check_count(source, "the head size", config.head_dim, 4096);
  check_count(source, "the vocabulary size", config.vocab, 1 << 24);
  check_count(source, "the context length", config.context, 1 << 28);
  check_count(source, "the rotary size", config.rotary_dim, config.head_dim);
  if (config.heads % config.kv_heads != 0) {
    refuse("{}: {} heads cannot share {} key/value heads evenly", source, config.heads, config.kv_heads);
  }
  if (config.rotary_dim % 2 != 0)
    refuse("{}: the rotary size is {}; it must be even", source, config.rotary_dim);
  for (const auto* ropes : {&config.ropes, &config.long_ropes})
    for (const RopeTable& rope : *ropes) check_rope(config, rope, source);
  if (config.long_context != 0 && config.long_ropes.size() != config.ropes.size())
    fail("{}: there are {} rotary tables, but {} long ones", source, config.ropes.size(),
         config.long_ropes.size());
  for (const LayerConfig& layer : config.layers) {
    if (layer.rope < -1 || layer.rope >= static_cast<int32_t>(config.ropes.size()))
      fail("{}: a layer has rotary table {} of {}", source, layer.rope, config.ropes.size());
    if (layer.window < 0) refuse("{}: a sliding window is {}; it must be positive", source, layer.window);
  }
  check_factors(config, source);
  check_experts(config, source);
  if (!std::isfinite(config.norm_eps) || config.norm_eps < 0 || config.norm_eps > 1) {
    refuse("{}: the norm epsilon is {}; it must be from 0 to 1", source, config.norm_eps);
  }
}

}  // namespace sheaf

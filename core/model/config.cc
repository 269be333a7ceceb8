#include "core/model/config.h"

#include <cmath>

#include "core/base/error.h"

namespace sheaf {
namespace {

void check_count(const std::string& source, const char* what, int64_t value, int64_t most) {
  if (value < 1 || value > most) refuse("{}: {} is {}; it must be from 1 to {}", source, what, value, most);
}

}  // namespace

void check_config(const ModelConfig& config, const std::string& source) {
  check_count(source, "the number of layers", config.layers, 4096);
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
  if (config.rope_freqs.size() != static_cast<size_t>(config.rotary_dim) / 2) {
    refuse("{}: there are {} rotary frequencies; there must be {}", source, config.rope_freqs.size(),
           config.rotary_dim / 2);
  }
  for (const float frequency : config.rope_freqs) {
    if (!std::isfinite(frequency)) refuse("{}: a rotary frequency is {}", source, frequency);
  }
  if (!std::isfinite(config.rope_scale) || config.rope_scale <= 0) {
    refuse("{}: the rotary scale is {}; it must be positive", source, config.rope_scale);
  }
  if (!std::isfinite(config.norm_eps) || config.norm_eps < 0 || config.norm_eps > 1) {
    refuse("{}: the norm epsilon is {}; it must be from 0 to 1", source, config.norm_eps);
  }
}

}  // namespace sheaf

#include "core/model/shapes.h"

#include <cmath>
#include <fmt/ranges.h>

#include "core/error.h"

namespace sheaf {
namespace {

struct Qwen3Shape {
  const char* name;
  int32_t layers, hidden, ffn, heads, kv_heads;
  bool tied;
};

constexpr Qwen3Shape kQwen3[] = {
    {"qwen3-0.6b", 28, 1024, 3072, 16, 8, true},  {"qwen3-1.7b", 28, 2048, 6144, 16, 8, true},
    {"qwen3-4b", 36, 2560, 9728, 32, 8, true},    {"qwen3-8b", 36, 4096, 12288, 32, 8, false},
    {"qwen3-32b", 64, 5120, 25600, 64, 8, false},
};

}  // namespace

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const Qwen3Shape& shape : kQwen3) names.emplace_back(shape.name);
  return names;
}

ModelConfig shape_by_name(const std::string& name) {
  for (const Qwen3Shape& shape : kQwen3) {
    if (shape.name != name) continue;
    ModelConfig config;
    config.family = "qwen3";
    config.layers = shape.layers;
    config.hidden = shape.hidden;
    config.ffn = shape.ffn;
    config.heads = shape.heads;
    config.kv_heads = shape.kv_heads;
    config.head_dim = 128;
    config.vocab = 151936;
    config.context = 40960;
    config.norm_eps = 1e-6f;
    config.qk_norm = QkNorm::per_head;
    config.tied_output = shape.tied;
    config.rotary_dim = 128;
    for (int i = 0; i < 64; ++i) config.rope_freqs.push_back(static_cast<float>(std::pow(1e6, -i / 64.0)));
    return config;
  }
  refuse("there is no shape \"{}\"; known ones: {}", name, fmt::join(shape_names(), ", "));
}

int64_t layer_weights(const ModelConfig& config) {
  const int64_t attention =
      int64_t{config.hidden} * config.head_dim * (2 * config.heads + 2 * config.kv_heads);
  return config.layers * (attention + int64_t{3} * config.hidden * config.ffn);
}

}  // namespace sheaf

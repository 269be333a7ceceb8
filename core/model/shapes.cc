#include "core/model/shapes.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/model/rope.h"
#include "core/text/spelling.h"

namespace sheaf {
namespace {

struct Shape {
  const char* name;
  const char* family;
  int32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab, context;
  bool tied;
};

// As in the models' config.json files.
constexpr Shape kShapes[] = {
    {"smollm2-135m", "llama", 30, 576, 1536, 9, 3, 64, 49152, 8192, true},
    {"smollm2-360m", "llama", 32, 960, 2560, 15, 5, 64, 49152, 8192, true},
    {"smollm2-1.7b", "llama", 24, 2048, 8192, 32, 32, 64, 49152, 8192, true},
    {"qwen3-0.6b", "qwen3", 28, 1024, 3072, 16, 8, 128, 151936, 40960, true},
    {"qwen3-1.7b", "qwen3", 28, 2048, 6144, 16, 8, 128, 151936, 40960, true},
    {"qwen3-4b", "qwen3", 36, 2560, 9728, 32, 8, 128, 151936, 40960, true},
    {"qwen3-8b", "qwen3", 36, 4096, 12288, 32, 8, 128, 151936, 40960, false},
    {"qwen3-14b", "qwen3", 40, 5120, 17408, 40, 8, 128, 151936, 40960, false},
    {"qwen3-32b", "qwen3", 64, 5120, 25600, 64, 8, 128, 151936, 40960, false},
    {"qwen2.5-0.5b", "qwen2", 24, 896, 4864, 14, 2, 64, 151936, 32768, true},
    {"qwen2.5-1.5b", "qwen2", 28, 1536, 8960, 12, 2, 128, 151936, 32768, true},
    {"qwen2.5-3b", "qwen2", 36, 2048, 11008, 16, 2, 128, 151936, 32768, true},
    {"qwen2.5-7b", "qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 32768, false},
    {"qwen2.5-14b", "qwen2", 48, 5120, 13824, 40, 8, 128, 152064, 32768, false},
    {"qwen2.5-32b", "qwen2", 64, 5120, 27648, 40, 8, 128, 152064, 32768, false},
    {"llama-160m", "llama", 12, 768, 3072, 12, 12, 64, 32000, 2048, false},
    {"sheared-llama-1.3b", "llama", 24, 2048, 5504, 16, 16, 128, 32000, 4096, false},
    {"llama-3.2-1b", "llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072, true},
    {"llama-3.2-3b", "llama", 28, 3072, 8192, 24, 8, 128, 128256, 131072, true},
    {"llama-3-8b", "llama", 32, 4096, 14336, 32, 8, 128, 128256, 8192, false},
    {"llama-3.1-8b", "llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072, false},
    {"llama-3.1-70b", "llama", 80, 8192, 28672, 64, 8, 128, 128256, 131072, false},
    {"codellama-7b", "llama", 32, 4096, 11008, 32, 32, 128, 32016, 16384, false},
    {"codellama-13b", "llama", 40, 5120, 13824, 40, 40, 128, 32016, 16384, false},
    {"codellama-34b", "llama", 48, 8192, 22016, 64, 8, 128, 32000, 16384, false},
    {"mistral-7b", "mistral", 32, 4096, 14336, 32, 8, 128, 32768, 32768, false},
    {"mistral-nemo-12b", "mistral", 40, 5120, 14336, 32, 8, 128, 131072, 131072, false},
    {"phi-4-14b", "phi3", 40, 5120, 17920, 40, 10, 128, 100352, 16384, false},
    {"olmo-2-32b", "olmo2", 64, 5120, 27648, 40, 8, 128, 100352, 4096, false},
};

}  // namespace

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const Shape& shape : kShapes) names.emplace_back(shape.name);
  return names;
}

bool is_shape(const std::string& name) {
  return std::ranges::find(kShapes, name, &Shape::name) != std::end(kShapes);
}

ModelConfig shape_by_name(const std::string& name) {
  for (const Shape& shape : kShapes) {
    if (shape.name != name) continue;
    ModelConfig config;
    config.family = shape.family;
    config.layers = shape.layers;
    config.hidden = shape.hidden;
    config.ffn = shape.ffn;
    config.heads = shape.heads;
    config.kv_heads = shape.kv_heads;
    config.head_dim = shape.head_dim;
    config.vocab = shape.vocab;
    config.context = shape.context;
    config.norm_eps = 1e-6f;
    if (config.family == "qwen3") config.qk_norm = QkNorm::per_head;
    if (config.family == "olmo2") config.qk_norm = QkNorm::whole;
    config.post_norm = config.family == "olmo2";
    config.tied_output = shape.tied;
    config.rotary_dim = shape.head_dim;
    // The angles do not change how long a step takes.
    config.rope_freqs = plain_rope(1e6, shape.head_dim).freqs;
    return config;
  }
  refuse("unknown shape \"{}\"{}", name, suggest_spelling(name, shape_names()));
}

int64_t layer_weights(const ModelConfig& config) {
  const int64_t attention =
      int64_t{config.hidden} * config.head_dim * (2 * config.heads + 2 * config.kv_heads);
  return config.layers * (attention + int64_t{3} * config.hidden * config.ffn);
}

}  // namespace sheaf

#include "core/model/shapes.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "core/base/error.h"
#include "core/model/rope.h"
#include "core/text/spelling.h"

namespace sheaf {
namespace {

/// What the models of a family have alike.
struct Alike {
  const char* family;
  QkNorm qk_norm = QkNorm::none;
  Norms norms = {};
  Biases biases = {};
  Activation activation = Activation::silu;
  int32_t window = 0;             ///< of layers; 0: they see all keys
  int32_t period = 0;             ///< one of so many layers has no window; 0: all have one
  bool scales_embedding = false;  ///< by sqrt(hidden)
  double rope_factor = 1;         ///< divisor of positions (linear rope scaling)
  double local_base = 0;          ///< base of the angles of layers with a window; 0: as of the others
  bool sinks = false;
};
constexpr Alike kLlama{"llama"}, kMistral{"mistral"}, kPhi3{"phi3"};
constexpr Alike kQwen2{.family = "qwen2", .biases = kQkvBiases};
constexpr Alike kQwen3{.family = "qwen3", .qk_norm = QkNorm::per_head};
constexpr Alike kOlmo2{.family = "olmo2", .qk_norm = QkNorm::whole, .norms = kNormsAfter};

constexpr Alike kGemma3{.family = "gemma3_text",
                        .qk_norm = QkNorm::per_head,
                        .norms = kNormsAround,
                        .activation = Activation::gelu_tanh,
                        .window = 1024,
                        .period = 6,
                        .scales_embedding = true,
                        .rope_factor = 8,
                        .local_base = 1e4};
constexpr Alike kWindowedMistral{.family = "mistral", .window = 4096};
constexpr Alike kQwen3Moe{.family = "qwen3_moe", .qk_norm = QkNorm::per_head}, kMixtral{"mixtral"};
constexpr Alike kOlmoe{.family = "olmoe", .qk_norm = QkNorm::whole};
constexpr Experts kOf768{.count = 128, .per_token = 8, .ffn = 768, .normalized = true};
constexpr Experts kOf1536{.count = 128, .per_token = 8, .ffn = 1536, .normalized = true};
constexpr Experts kOf14336{.count = 8, .per_token = 2, .ffn = 14336, .normalized = true};
constexpr Experts kOf1024{.count = 64, .per_token = 8, .ffn = 1024};
constexpr Alike kGptOss{.family = "gpt_oss",
                        .biases = {.q = true, .k = true, .v = true, .o = true},
                        .activation = Activation::clamped,
                        .window = 128,
                        .period = 2,
                        .sinks = true};
constexpr Experts experts_of_gpt_oss(int32_t count) {
  return {
      .count = count, .per_token = 4, .ffn = 2880, .logit_bias = true, .biases = true, .normalized = true};
}

struct Shape {
  const char* name;
  Alike alike;
  int32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab, context;
  bool tied;
  int32_t query_scalar = 0;  ///< scores are divided by its root; 0: by that of head_dim
  Experts experts = {};      ///< of all layers
};

// As in the models' config.json files.
constexpr Shape kShapes[] = {
    {"smollm2-135m", kLlama, 30, 576, 1536, 9, 3, 64, 49152, 8192, true},
    {"smollm2-360m", kLlama, 32, 960, 2560, 15, 5, 64, 49152, 8192, true},
    {"smollm2-1.7b", kLlama, 24, 2048, 8192, 32, 32, 64, 49152, 8192, true},
    {"qwen3-0.6b", kQwen3, 28, 1024, 3072, 16, 8, 128, 151936, 40960, true},
    {"qwen3-1.7b", kQwen3, 28, 2048, 6144, 16, 8, 128, 151936, 40960, true},
    {"qwen3-4b", kQwen3, 36, 2560, 9728, 32, 8, 128, 151936, 40960, true},
    {"qwen3-8b", kQwen3, 36, 4096, 12288, 32, 8, 128, 151936, 40960, false},
    {"qwen3-14b", kQwen3, 40, 5120, 17408, 40, 8, 128, 151936, 40960, false},
    {"qwen3-32b", kQwen3, 64, 5120, 25600, 64, 8, 128, 151936, 40960, false},
    {"qwen2.5-0.5b", kQwen2, 24, 896, 4864, 14, 2, 64, 151936, 32768, true},
    {"qwen2.5-1.5b", kQwen2, 28, 1536, 8960, 12, 2, 128, 151936, 32768, true},
    {"qwen2.5-3b", kQwen2, 36, 2048, 11008, 16, 2, 128, 151936, 32768, true},
    {"qwen2.5-7b", kQwen2, 28, 3584, 18944, 28, 4, 128, 152064, 32768, false},
    {"qwen2.5-14b", kQwen2, 48, 5120, 13824, 40, 8, 128, 152064, 32768, false},
    {"qwen2.5-32b", kQwen2, 64, 5120, 27648, 40, 8, 128, 152064, 32768, false},
    {"llama-160m", kLlama, 12, 768, 3072, 12, 12, 64, 32000, 2048, false},
    {"sheared-llama-1.3b", kLlama, 24, 2048, 5504, 16, 16, 128, 32000, 4096, false},
    {"llama-3.2-1b", kLlama, 16, 2048, 8192, 32, 8, 64, 128256, 131072, true},
    {"llama-3.2-3b", kLlama, 28, 3072, 8192, 24, 8, 128, 128256, 131072, true},
    {"llama-3-8b", kLlama, 32, 4096, 14336, 32, 8, 128, 128256, 8192, false},
    {"llama-3.1-8b", kLlama, 32, 4096, 14336, 32, 8, 128, 128256, 131072, false},
    {"llama-3.1-70b", kLlama, 80, 8192, 28672, 64, 8, 128, 128256, 131072, false},
    {"codellama-7b", kLlama, 32, 4096, 11008, 32, 32, 128, 32016, 16384, false},
    {"codellama-13b", kLlama, 40, 5120, 13824, 40, 40, 128, 32016, 16384, false},
    {"codellama-34b", kLlama, 48, 8192, 22016, 64, 8, 128, 32000, 16384, false},
    {"mistral-7b", kMistral, 32, 4096, 14336, 32, 8, 128, 32768, 32768, false},
    {"mistral-7b-v0.1", kWindowedMistral, 32, 4096, 14336, 32, 8, 128, 32000, 32768, false},
    {"mistral-nemo-12b", kMistral, 40, 5120, 14336, 32, 8, 128, 131072, 131072, false},
    {"yi-6b-200k", kLlama, 32, 4096, 11008, 32, 4, 128, 64000, 200000, false},
    {"phi-4-14b", kPhi3, 40, 5120, 17920, 40, 10, 128, 100352, 16384, false},
    {"olmo-2-32b", kOlmo2, 64, 5120, 27648, 40, 8, 128, 100352, 4096, false},
    {"gemma-3-4b", kGemma3, 34, 2560, 10240, 8, 4, 256, 262208, 131072, true},
    {"gemma-3-12b", kGemma3, 48, 3840, 15360, 16, 8, 256, 262208, 131072, true},
    {"gemma-3-27b", kGemma3, 62, 5376, 21504, 32, 16, 128, 262208, 131072, true, 168},
    {"qwen3-30b-a3b", kQwen3Moe, 48, 2048, 6144, 32, 4, 128, 151936, 40960, false, 0, kOf768},
    {"qwen3-235b-a22b", kQwen3Moe, 94, 4096, 12288, 64, 4, 128, 151936, 40960, false, 0, kOf1536},
    {"mixtral-8x7b", kMixtral, 32, 4096, 14336, 32, 8, 128, 32000, 32768, false, 0, kOf14336},
    {"olmoe-1b-7b", kOlmoe, 16, 2048, 1024, 16, 16, 128, 50304, 4096, false, 0, kOf1024},
    {"gpt-oss-20b", kGptOss, 24, 2880, 2880, 64, 8, 64, 201088, 131072, false, 0, experts_of_gpt_oss(32)},
    {"gpt-oss-120b", kGptOss, 36, 2880, 2880, 64, 8, 64, 201088, 131072, false, 0, experts_of_gpt_oss(128)},
};

/// Values of a matrix that are drawn; the others repeat them, for drawing takes longer than what is measured.
/// The number is a prime, so that no two rows are alike.
constexpr size_t kDrawn = 1'000'003;

class RandomWeights {
 public:
  RandomWeights(Model& model, uint32_t seed) : model_(model), random_(seed) {}

  Matrix matrix(std::string name, int64_t rows, int64_t cols, float mean, float spread) {
    std::normal_distribution<float> normal(mean, spread);
    auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(rows * cols));
    const size_t drawn = std::min(values->size(), kDrawn);
    std::generate_n(values->begin(), drawn, [&] { return normal(random_); });
    for (size_t at = drawn; at < values->size(); at += drawn)
      std::copy_n(values->begin(), std::min(drawn, values->size() - at),
                  values->begin() + static_cast<ptrdiff_t>(at));
    Matrix result;
    result.name = std::move(name);
    result.rows = rows;
    result.cols = cols;
    result.data = reinterpret_cast<const std::byte*>(values->data());
    model_.files.push_back(std::move(values));
    return result;
  }
  Matrix vector(std::string name, int64_t size, float mean) {
    return matrix(std::move(name), 1, size, mean, 0.1f);
  }
  Matrix projection(std::string name, int64_t rows, int64_t cols) {
    return matrix(std::move(name), rows, cols, 0, 1.5f / std::sqrt(static_cast<float>(cols)));
  }

 private:
  Model& model_;
  std::mt19937 random_;
};

void make_experts(const ModelConfig& config, RandomWeights& make, LayerWeights& layer) {
  const Experts& experts = config.experts;
  layer.router = make.projection("router", experts.count, config.hidden);
  if (experts.choice_bias || experts.logit_bias)
    layer.router_bias = make.vector("router_bias", experts.count, 0);
  if (experts.shared_gate) layer.shared_gate = make.projection("shared_gate", 1, config.hidden);
  for (int32_t i = 0; i < experts.count; ++i) {
    ExpertWeights expert{make.projection("gate", experts.ffn, config.hidden),
                         make.projection("up", experts.ffn, config.hidden),
                         make.projection("down", config.hidden, experts.ffn)};
    if (experts.biases) {
      expert.gate_bias = make.vector("gate_bias", experts.ffn, 0);
      expert.up_bias = make.vector("up_bias", experts.ffn, 0);
      expert.down_bias = make.vector("down_bias", config.hidden, 0);
    }
    layer.experts.push_back(std::move(expert));
  }
}

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
    config.family = shape.alike.family;
    config.layers.resize(static_cast<size_t>(shape.layers));
    config.hidden = shape.hidden;
    config.ffn = shape.ffn;
    config.heads = shape.heads;
    config.kv_heads = shape.kv_heads;
    config.head_dim = shape.head_dim;
    config.vocab = shape.vocab;
    config.context = shape.context;
    config.norm_eps = 1e-6f;
    config.qk_norm = shape.alike.qk_norm;
    config.norms = shape.alike.norms;
    config.biases = shape.alike.biases;
    config.activation = shape.alike.activation;
    config.sinks = shape.alike.sinks;
    config.tied_output = shape.tied;
    if (shape.alike.scales_embedding) config.embedding_scale = std::sqrt(static_cast<float>(shape.hidden));
    if (shape.query_scalar > 0) config.score_scale = 1 / std::sqrt(static_cast<float>(shape.query_scalar));
    config.rotary_dim = shape.head_dim;
    // The base of most families differs from this, which does not change how long a step takes.
    config.ropes.push_back(linear_rope(1e6, shape.head_dim, shape.alike.rope_factor));
    if (shape.alike.local_base > 0)
      config.ropes.push_back(plain_rope(shape.alike.local_base, shape.head_dim));
    for (size_t i = 0; i < config.layers.size(); ++i)
      if (const auto period = static_cast<size_t>(shape.alike.period); period == 0 || (i + 1) % period != 0)
        config.layers[i] = {shape.alike.window, static_cast<int32_t>(config.ropes.size()) - 1};
    config.experts = shape.experts;
    for (LayerConfig& layer : config.layers) layer.experts = shape.experts.count > 0;
    return config;
  }
  refuse("unknown shape \"{}\"{}", name, suggest_spelling(name, shape_names()));
}

int64_t layer_weights(const ModelConfig& config) {
  const int64_t attention =
      int64_t{config.hidden} * config.head_dim * (2 * config.heads + 2 * config.kv_heads);
  const Experts& experts = config.experts;
  int64_t mlps = 0;
  for (const LayerConfig& layer : config.layers) {
    mlps += int64_t{3} * config.hidden * config.mlp_width(layer);
    if (layer.experts)
      mlps += int64_t{config.hidden} * (experts.count + int64_t{3} * experts.per_token * experts.ffn);
  }
  return config.layer_count() * attention + mlps;
}

int64_t expert_weights(const ModelConfig& config) {
  return int64_t{3} * config.hidden * config.experts.ffn;
}

int64_t expert_layers(const ModelConfig& config) {
  return std::ranges::count_if(config.layers, [](const LayerConfig& layer) { return layer.experts; });
}

int64_t unrouted_weights(const ModelConfig& config) {
  return layer_weights(config) - expert_layers(config) * config.experts.per_token * expert_weights(config);
}

int64_t idle_weights(const ModelConfig& config) {
  const Experts& experts = config.experts;
  return expert_layers(config) * (experts.count - experts.per_token) * expert_weights(config);
}

Model make_random_model(const ModelConfig& config, uint32_t seed) {
  Model model;
  model.path = "random";
  model.config = config;
  RandomWeights make(model, seed);
  const int64_t q_size = int64_t{config.heads} * config.head_dim;
  const int64_t kv_size = int64_t{config.kv_heads} * config.head_dim;
  model.embedding = make.matrix("embedding", config.vocab, config.hidden, 0, 1);
  for (int32_t i = 0; i < config.layer_count(); ++i) {
    LayerWeights layer;
    const auto norm = [&](bool there, Matrix& weight, const char* name) {
      if (there) weight = make.vector(name, config.hidden, 1);
    };
    norm(config.norms.pre_attention, layer.pre_attention_norm, "pre_attention_norm");
    norm(config.norms.post_attention, layer.post_attention_norm, "post_attention_norm");
    norm(config.norms.pre_mlp, layer.pre_mlp_norm, "pre_mlp_norm");
    norm(config.norms.post_mlp, layer.post_mlp_norm, "post_mlp_norm");
    layer.q = make.projection("q", q_size, config.hidden);
    layer.k = make.projection("k", kv_size, config.hidden);
    layer.v = make.projection("v", kv_size, config.hidden);
    layer.o = make.projection("o", config.hidden, q_size);
    const LayerConfig& described = config.layers[static_cast<size_t>(i)];
    if (const int32_t width = config.mlp_width(described); width > 0) {
      layer.gate = make.projection("gate", width, config.hidden);
      layer.up = make.projection("up", width, config.hidden);
      layer.down = make.projection("down", config.hidden, width);
    }
    if (described.experts) make_experts(config, make, layer);
    if (config.sinks) layer.sinks = make.vector("sinks", config.heads, 1);
    const auto bias = [&](bool there, const Matrix& weight, Matrix& values) {
      if (there) values = make.vector(weight.name + "_bias", weight.rows, 0);
    };
    bias(config.biases.q, layer.q, layer.q_bias);
    bias(config.biases.k, layer.k, layer.k_bias);
    bias(config.biases.v, layer.v, layer.v_bias);
    bias(config.biases.o, layer.o, layer.o_bias);
    bias(config.biases.gate, layer.gate, layer.gate_bias);
    bias(config.biases.up, layer.up, layer.up_bias);
    bias(config.biases.down, layer.down, layer.down_bias);
    if (config.qk_norm != QkNorm::none) {
      const bool whole = config.qk_norm == QkNorm::whole;
      layer.q_norm = make.vector("q_norm", whole ? q_size : config.head_dim, 1);
      layer.k_norm = make.vector("k_norm", whole ? kv_size : config.head_dim, 1);
    }
    model.layers.push_back(std::move(layer));
  }
  model.final_norm = make.vector("final_norm", config.hidden, 1);
  model.output =
      config.tied_output ? model.embedding : make.projection("output", config.vocab, config.hidden);
  if (config.biases.output) model.output_bias = make.vector("output_bias", config.vocab, 0);
  return model;
}

int64_t random_model_bytes(const ModelConfig& config) {
  const int64_t embeddings = int64_t{config.vocab} * config.hidden * (config.tied_output ? 1 : 2);
  return (layer_weights(config) + idle_weights(config) + embeddings) * int64_t{sizeof(float)};
}

}  // namespace sheaf

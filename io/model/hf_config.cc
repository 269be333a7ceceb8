#include <algorithm>
#include <array>
#include <cmath>

#include "io/base/json_file.h"
#include "io/model/family.h"
#include "io/model/model_config.h"

namespace sheaf {
namespace {

using nlohmann::json;

const Family& family_of(const HfFields& fields) {
  const std::string type = fields.text("model_type");
  const Family* family = find_family(type, &Family::name);
  if (family == nullptr)
    refuse("{}: model type {} is not supported (supported: {})", fields.source(), shown(type),
           family_names(&Family::name));
  if (const json* architectures = fields.find("architectures")) {
    if (!architectures->is_array() ||
        std::ranges::find(*architectures, json(family->architecture)) == architectures->end()) {
      refuse("{}: \"architectures\" is {}, {} is needed", fields.source(), shown_json(*architectures),
             family->architecture);
    }
  }
  return *family;
}

bool reads(const Family& family, std::string_view key) {
  return std::ranges::any_of(family.hf_keys, [&](const char* own) { return own != nullptr && own == key; });
}

/// Fields that change what the model computes in ways that its family does not know; the neutral value
/// passes.
void refuse_unsupported(const HfFields& fields, const Family& family) {
  struct Neutral {
    const char* key;
    json value;
  };
  static const std::array<Neutral, 16> neutral{{
      {"attention_bias", false},
      {"mlp_bias", false},
      {"is_encoder_decoder", false},
      {"use_qk_norm", false},
      {"num_local_experts", 0},
      {"num_experts", 0},
      {"n_routed_experts", 0},
      {"attn_logit_softcapping", nullptr},
      {"final_logit_softcapping", nullptr},
      {"clip_qkv", nullptr},
      {"attention_multiplier", nullptr},
      {"logit_scale", 1},
      {"logits_scaling", 1},
      {"embedding_multiplier", 1},
      {"residual_multiplier", 1},
      {"text_config", nullptr},
  }};
  for (const auto& [key, value] : neutral) {
    const json* found = fields.find(key);
    if (found != nullptr && *found != value && !reads(family, key))
      refuse("{}: \"{}\": {} is not supported", fields.source(), key, shown_json(*found));
  }
  if (reads(family, "hidden_act")) return;
  const std::string activation = fields.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    refuse("{}: activation {} is not supported (supported: silu)", fields.source(), shown(activation));
  }
}

void check_layer_types(const HfFields& fields) {
  const json* types = fields.find("layer_types");
  if (types == nullptr) return;
  if (!types->is_array()) refuse("{}: \"layer_types\" is not a list", fields.source());
  for (const json& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      refuse("{}: attention type {} is not supported", fields.source(), shown_json(type));
    }
  }
}

std::vector<float> factors(const HfFields& rope, const char* key, int32_t pairs) {
  const json* list = rope.find(key);
  if (list == nullptr || !list->is_array())
    refuse("{}: \"{}\" must be a list of numbers", rope.source(), key);
  if (list->size() != static_cast<size_t>(pairs)) {
    refuse("{}: \"{}\" has {} numbers; it must have {}", rope.source(), key, list->size(), pairs);
  }
  std::vector<float> values;
  for (const json& value : *list) {
    if (!value.is_number() || !(value.get<float>() > 0))
      refuse("{}: \"{}\" contains {}; its numbers must be positive", rope.source(), key, shown_json(value));
    values.push_back(value.get<float>());
  }
  return values;
}

/// Reads the rope section, which transformers 5 calls rope_parameters and older versions spread over
/// rope_theta, rope_scaling and partial_rotary_factor.
class RopeSection {
 public:
  RopeSection(const HfFields& fields, const HfRopeRules& rules, ModelConfig& config)
      : fields_(fields),
        rules_(rules),
        config_(config),
        object_(section(fields)),
        rope_(object_, fields.source() + ": rope") {}

  void read() {
    check_keys();
    base_ = rope_.number("rope_theta", fields_.number("rope_theta", rules_.base));
    if (!(base_ > 1)) refuse("{}: \"rope_theta\" is {}; it must be above 1", fields_.source(), base_);
    const double part = rope_.number("partial_rotary_factor", fields_.number("partial_rotary_factor", 1));
    if (!(part > 0 && part <= 1)) refuse("{}: \"partial_rotary_factor\" is {}", fields_.source(), part);
    if (part != 1 && !rules_.partial)
      refuse("{}: \"partial_rotary_factor\": {} is not supported for {}", fields_.source(), part,
             config_.family);
    config_.rotary_dim = static_cast<int32_t>(config_.head_dim * part);
    config_.ropes = {make_table()};
  }

 private:
  static json section(const HfFields& fields) {
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const json* found = fields.find(key);
      if (found == nullptr) continue;
      if (!found->is_object())
        refuse("{}: \"{}\" is {}; it must be an object", fields.source(), key, shown_json(*found));
      if (!found->empty()) return *found;
    }
    return json::object();
  }

  void check_keys() const {
    static constexpr std::array known{"rope_type",
                                      "type",
                                      "rope_theta",
                                      "partial_rotary_factor",
                                      "factor",
                                      "low_freq_factor",
                                      "high_freq_factor",
                                      "original_max_position_embeddings",
                                      "attention_factor",
                                      "beta_fast",
                                      "beta_slow",
                                      "mscale",
                                      "mscale_all_dim",
                                      "truncate",
                                      "short_factor",
                                      "long_factor",
                                      "max_position_embeddings",
                                      "finetuned"};
    for (const auto& [key, value] : object_.items()) {
      if (std::ranges::find(known, key) == known.end())
        refuse("{}: {} is not supported", rope_.source(), shown(key));
    }
  }

  double original_context() const {
    // transformers lets the field beside the section win over the one inside it.
    const char* key = "original_max_position_embeddings";
    if (fields_.has(key)) return positive(fields_, key);
    return positive(rope_, key, rules_.original_context > 0 ? rules_.original_context : config_.context);
  }

  RopeTable make_table() {
    std::string type = rope_.text("rope_type", rope_.text("type", "default"));
    if (rules_.old_long_rope && (type == "su" || type == "yarn")) type = "longrope";
    const int32_t dim = config_.rotary_dim;
    if (dim < 2)
      refuse("{}: only {} of {} dimensions are rotary; at least 2 must be", fields_.source(), dim,
             config_.head_dim);
    if (type == "default") return plain_rope(base_, dim);
    if (type == "linear") return linear_rope(base_, dim, positive(rope_, "factor"));
    if (type == "llama3") {
      const Llama3Scaling scaling{positive(rope_, "factor"), positive(rope_, "low_freq_factor"),
                                  positive(rope_, "high_freq_factor"), original_context()};
      if (!(scaling.high_freq_factor > scaling.low_freq_factor))
        refuse("{}: \"high_freq_factor\" must be above \"low_freq_factor\"", rope_.source());
      return llama3_rope(base_, dim, scaling);
    }
    if (type == "yarn") return yarn(dim);
    if (type == "longrope") return longrope(dim);
    refuse("{}: rope type {} is not supported (supported: default, linear, llama3, yarn, longrope)",
           fields_.source(), shown(type));
  }

  RopeTable yarn(int32_t dim) {
    YarnScaling scaling{.factor = 1, .original_context = original_context(), .attention_factor = 1};
    scaling.factor = positive(rope_, "factor", config_.context / scaling.original_context);
    const double mscale = rope_.number("mscale", 0);
    const double all = rope_.number("mscale_all_dim", 0);
    if (rope_.has("attention_factor")) {
      scaling.attention_factor = positive(rope_, "attention_factor");
    } else if (mscale != 0 && all != 0) {
      scaling.attention_factor =
          yarn_attention_factor(scaling.factor, mscale) / yarn_attention_factor(scaling.factor, all);
    } else {
      scaling.attention_factor = yarn_attention_factor(scaling.factor);
    }
    scaling.beta_fast = positive(rope_, "beta_fast", scaling.beta_fast);
    scaling.beta_slow = positive(rope_, "beta_slow", scaling.beta_slow);
    scaling.truncate = rope_.boolean("truncate", true);
    // Model cards add yarn without raising max_position_embeddings.
    const double reach = scaling.original_context * scaling.factor;
    if (reach > config_.context && reach < 1 << 28) config_.context = static_cast<int32_t>(reach);
    return yarn_rope(base_, dim, scaling);
  }

  /// Only the short factors: the long ones belong to prompts past the original context, which the context
  /// excludes.
  RopeTable longrope(int32_t dim) {
    const double original = original_context();
    if (original <= 1) refuse("{}: \"original_max_position_embeddings\" is {}", rope_.source(), original);
    RopeTable table = divided_rope(base_, dim, factors(rope_, "short_factor", dim / 2));
    if (rope_.has("attention_factor")) {
      table.scale = static_cast<float>(positive(rope_, "attention_factor"));
    } else {
      const double factor = positive(rope_, "factor", config_.context / original);
      if (factor > 1) table.scale = static_cast<float>(std::sqrt(1 + std::log(factor) / std::log(original)));
    }
    if (original < config_.context) config_.context = static_cast<int32_t>(original);
    return table;
  }

  const HfFields& fields_;
  const HfRopeRules& rules_;
  ModelConfig& config_;
  json object_;
  HfFields rope_;
  double base_ = 0;
};

ModelConfig read_sizes(const HfFields& fields) {
  ModelConfig config;
  const int32_t layers = count(fields, "num_hidden_layers");
  if (layers > kMostLayers)
    refuse("{}: \"num_hidden_layers\" is {}, at most {} are supported", fields.source(), layers, kMostLayers);
  config.layers.resize(static_cast<size_t>(layers));
  config.hidden = count(fields, "hidden_size");
  config.ffn = count(fields, "intermediate_size");
  config.heads = count(fields, "num_attention_heads");
  config.kv_heads = count(fields, "num_key_value_heads", config.heads);
  config.context = count(fields, "max_position_embeddings");
  config.head_dim = count(fields, "head_dim", std::max(config.hidden / config.heads, 1));
  config.vocab = count(fields, "vocab_size");
  config.norm_eps = static_cast<float>(fields.number("rms_norm_eps"));
  config.tied_output = fields.boolean("tie_word_embeddings", false);
  if (config.head_dim > 4096)
    refuse("{}: \"head_dim\" is {}, at most 4096 is supported", fields.source(), config.head_dim);
  return config;
}

}  // namespace

void read_hf_rope(const HfFields& file, ModelConfig& config, const HfRopeRules& rules) {
  RopeSection(file, rules, config).read();
}

std::vector<int64_t> read_hf_layers(const HfFields& file, const char* key, const ModelConfig& config) {
  const json* list = file.find(key);
  if (list == nullptr || !list->is_array() || list->size() != config.layers.size())
    refuse("{}: \"{}\" must be a list with one number for each of the {} layers", file.source(), key,
           config.layers.size());
  std::vector<int64_t> numbers;
  for (const json& number : *list) {
    if (!number.is_number_integer())
      refuse("{}: \"{}\" contains {}; it must be a list of whole numbers", file.source(), key,
             shown_json(number));
    numbers.push_back(number.get<int64_t>());
  }
  return numbers;
}

void read_hf_window(const HfFields& file, ModelConfig& config, int32_t fallback) {
  const int32_t window = count(file, "sliding_window", file.says_null("sliding_window") ? 0 : fallback);
  if (window > 0) config.context = std::min(config.context, window);
}

FileConfig read_hf_config(const std::string& path) {
  constexpr size_t largest = 1 << 20;
  const json object = read_json_object(path, largest);
  const HfFields fields(object, path);
  const Family& family = family_of(fields);
  refuse_unsupported(fields, family);
  check_layer_types(fields);
  ModelConfig config = read_sizes(fields);
  config.family = family.name;
  family.describe(config);
  family.read_hf(fields, config);
  check_config(config, path);
  const std::optional<Quantization> quantization = read_quantization(fields, path);
  return {config, &family, quantization, quantization ? quantization->stored_bits() : 16};
}

}  // namespace sheaf

#include <algorithm>
#include <array>
#include <cmath>

#include "io/base/json_file.h"
#include "io/model/config_fields.h"

namespace sheaf {
namespace {

using nlohmann::json;

/// The fields of a config.json, or of a section of it.
struct HfFields : JsonFields {
  using JsonFields::JsonFields;
  static std::string named(const char* key) { return fmt::format("\"{}\"", key); }
};

const Family& family_of(const HfFields& fields) {
  const std::string type = fields.text("model_type");
  const Family* family = find_family(type, &FamilyNames::config);
  if (family == nullptr)
    refuse("{}: model type {} is not supported (supported: {})", fields.source(), shown(type),
           family_names(&FamilyNames::config));
  if (const json* architectures = fields.find("architectures")) {
    if (!architectures->is_array() ||
        std::ranges::find(*architectures, json(family->names.architecture)) == architectures->end()) {
      refuse("{}: \"architectures\" is {}, {} is needed", fields.source(), shown_json(*architectures),
             family->names.architecture);
    }
  }
  return *family;
}

/// Fields that change what the model computes in ways sheaf does not know; the neutral value passes.
void refuse_unsupported(const HfFields& fields) {
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
    if (found != nullptr && *found != value)
      refuse("{}: \"{}\": {} is not supported", fields.source(), key, shown_json(*found));
  }
  const std::string activation = fields.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    refuse("{}: activation {} is not supported (supported: silu)", fields.source(), shown(activation));
  }
}

/// A sliding window is not modelled: within one window it is plain attention, so it caps the context.
void apply_window(const HfFields& fields, const Family& family, const json& object, ModelConfig& config) {
  if (const json* types = fields.find("layer_types")) {
    if (!types->is_array()) refuse("{}: \"layer_types\" is not a list", fields.source());
    for (const json& type : *types) {
      if (type != "full_attention" && type != "sliding_attention") {
        refuse("{}: attention type {} is not supported", fields.source(), shown_json(type));
      }
    }
  }
  const bool switchable = config.family == "qwen2" || config.family == "qwen3";
  if (switchable && !fields.boolean("use_sliding_window", false)) return;
  const int32_t fallback = object.contains("sliding_window") ? 0 : family.default_window;
  const int32_t window = count(fields, "sliding_window", fallback);
  if (window > 0) config.context = std::min(config.context, window);
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
  RopeSection(const HfFields& fields, ModelConfig& config)
      : fields_(fields),
        config_(config),
        object_(section(fields)),
        rope_(object_, fields.source() + ": rope") {}

  void read() {
    check_keys();
    base_ = rope_.number("rope_theta", fields_.number("rope_theta", 10000));
    if (!(base_ > 1)) refuse("{}: \"rope_theta\" is {}; it must be above 1", fields_.source(), base_);
    const double part = rope_.number("partial_rotary_factor", fields_.number("partial_rotary_factor", 1));
    if (!(part > 0 && part <= 1)) refuse("{}: \"partial_rotary_factor\" is {}", fields_.source(), part);
    if (part != 1 && config_.family != "phi3")
      refuse("{}: \"partial_rotary_factor\": {} is not supported for {}", fields_.source(), part,
             config_.family);
    config_.rotary_dim = static_cast<int32_t>(config_.head_dim * part);
    set_rope(make_table(), config_);
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
    return positive(rope_, key, config_.family == "phi3" ? 4096 : config_.context);
  }

  RopeTable make_table() {
    std::string type = rope_.text("rope_type", rope_.text("type", "default"));
    if (config_.family == "phi3" && (type == "su" || type == "yarn")) type = "longrope";
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
  ModelConfig& config_;
  json object_;
  HfFields rope_;
  double base_ = 10000;
};

}  // namespace

FileConfig read_hf_config(const std::string& path) {
  constexpr size_t largest = 1 << 20;
  const json object = read_json_object(path, largest);
  const HfFields fields(object, path);
  const Family& family = family_of(fields);
  refuse_unsupported(fields);
  ModelConfig config = read_sizes(fields, family, &SizeKey::hugging_face);
  const int32_t plain_head_dim =
      family.default_head_dim > 0 ? family.default_head_dim : config.hidden / config.heads;
  config.head_dim = count(fields, "head_dim", plain_head_dim);
  config.vocab = count(fields, "vocab_size");
  config.norm_eps = static_cast<float>(fields.number("rms_norm_eps"));
  config.tied_output = fields.boolean("tie_word_embeddings", false);
  if (config.head_dim > 4096)
    refuse("{}: \"head_dim\" is {}, at most 4096 is supported", path, config.head_dim);
  RopeSection(fields, config).read();
  apply_window(fields, family, object, config);
  check_config(config, path);
  const std::optional<Quantization> quantization = read_quantization(fields, path);
  return {config, &family, quantization, quantization ? quantization->stored_bits() : 16};
}

}  // namespace sheaf

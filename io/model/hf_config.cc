#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

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
  static const std::array<Neutral, 17> neutral{{
      {"use_bidirectional_attention", false},
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
      {"text_config", nullptr},  // of a wrapped model it was taken already
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

void check_layer_types(const HfFields& fields, size_t layers) {
  const json* types = fields.find("layer_types");
  if (types == nullptr) return;
  if (!types->is_array() || types->size() != layers)
    refuse("{}: \"layer_types\" must be a list with one word for each of the {} layers", fields.source(),
           layers);
  for (const json& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      refuse(
          "{}: \"layer_types\": attention type {} is not supported (supported: full_attention, "
          "sliding_attention)",
          fields.source(), shown_json(type));
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
  /// `layer_type`: the section of these layers, where there is one for each type.
  RopeSection(const HfFields& fields, const HfRopeRules& rules, ModelConfig& config,
              const char* layer_type = nullptr)
      : fields_(fields),
        rules_(rules),
        config_(config),
        object_(section(fields, layer_type)),
        rope_(object_, fields.source() + ": rope") {}

  RopeTable read() {
    check_keys();
    base_ = rope_.number("rope_theta", fields_.number("rope_theta", rules_.base));
    if (!(base_ > 1)) refuse("{}: \"rope_theta\" is {}; it must be above 1", fields_.source(), base_);
    const double part =
        rope_.number("partial_rotary_factor", fields_.number("partial_rotary_factor", rules_.part));
    if (!(part > 0 && part <= 1)) refuse("{}: \"partial_rotary_factor\" is {}", fields_.source(), part);
    if (part != 1 && !rules_.partial)
      refuse("{}: \"partial_rotary_factor\": {} is not supported for {}", fields_.source(), part,
             config_.family);
    config_.rotary_dim = static_cast<int32_t>(config_.head_dim * part);
    return make_table();
  }

 private:
  static json section(const HfFields& fields, const char* layer_type) {
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const json* found = fields.find(key);
      if (found == nullptr) continue;
      if (!found->is_object())
        refuse("{}: \"{}\" is {}; it must be an object", fields.source(), key, shown_json(*found));
      if (layer_type != nullptr && found->contains(layer_type)) found = &found->at(layer_type);
      if (!found->is_object())
        refuse("{}: \"{}\": \"{}\" is {}; it must be an object", fields.source(), key, layer_type,
               shown_json(*found));
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

  /// The short factors hold up to the original context, the long ones for all positions of longer prompts.
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
    if (original < config_.context) {
      config_.long_context = std::exchange(config_.context, static_cast<int32_t>(original));
      config_.long_ropes = {divided_rope(base_, dim, factors(rope_, "long_factor", dim / 2))};
      config_.long_ropes[0].scale = table.scale;
    }
    return table;
  }

  const HfFields& fields_;
  const HfRopeRules& rules_;
  ModelConfig& config_;
  json object_;
  HfFields rope_;
  double base_ = 0;
};

/// Sliding layers that the family did not take as such: it knows none, or another field switches them off.
void refuse_unread_windows(const HfFields& fields, const ModelConfig& config) {
  const json* types = fields.find("layer_types");
  if (types == nullptr) return;
  if (fields.integer("sliding_window", 0) >= std::max(config.context, config.long_context)) return;
  for (size_t i = 0; i < config.layers.size(); ++i)
    if (types->at(i) == "sliding_attention" && config.layers[i].window == 0)
      refuse("{}: \"layer_types\" says that layer {} slides, which the rest of the file does not for {}",
             fields.source(), i, config.family);
}

int32_t count_or(const HfFields& fields, const char* key, int32_t fallback) {
  return fallback > 0 ? count(fields, key, fallback) : count(fields, key);
}

ModelConfig read_sizes(const HfFields& fields, const HfDefaults& defaults) {
  ModelConfig config;
  const int32_t layers = count(fields, "num_hidden_layers");
  if (layers > kMostLayers)
    refuse("{}: \"num_hidden_layers\" is {}, at most {} are supported", fields.source(), layers, kMostLayers);
  config.layers.resize(static_cast<size_t>(layers));
  config.hidden = count(fields, "hidden_size");
  config.ffn = count(fields, "intermediate_size");
  config.heads = count_or(fields, "num_attention_heads", defaults.heads);
  config.kv_heads =
      count_or(fields, "num_key_value_heads", defaults.kv_heads > 0 ? defaults.kv_heads : config.heads);
  config.context = count_or(fields, "max_position_embeddings", defaults.context);
  config.head_dim =
      count_or(fields, "head_dim",
               defaults.head_dim > 0 ? defaults.head_dim : std::max(config.hidden / config.heads, 1));
  config.vocab = count_or(fields, "vocab_size", defaults.vocab);
  config.norm_eps =
      static_cast<float>(defaults.norm_eps > 0 ? fields.number("rms_norm_eps", defaults.norm_eps)
                                               : fields.number("rms_norm_eps"));
  config.tied_output = fields.boolean("tie_word_embeddings", defaults.tied_output);
  if (config.head_dim > 4096)
    refuse("{}: \"head_dim\" is {}, at most 4096 is supported", fields.source(), config.head_dim);
  return config;
}

/// The part of a config.json that describes a text model: all of it, or "text_config" of a model that also
/// sees or hears.
json text_part(const json& object, const std::string& path) {
  const HfFields whole(object, path);
  const std::string type = whole.text("model_type");
  if (find_family(type, &Family::name) != nullptr) return object;
  const json* text = whole.find("text_config");
  if (text == nullptr && (whole.has("vision_config") || whole.has("audio_config")))
    refuse("{}: \"text_config\" is missing: the file describes no text model (\"model_type\": {})", path,
           shown(type));
  if (text == nullptr) return object;
  if (!text->is_object()) refuse("{}: \"text_config\" is {}; it must be an object", path, shown_json(*text));
  json part = *text;
  part.erase("architectures");  // of the text model by itself, where it says any
  if (!part.contains("tie_word_embeddings") && whole.has("tie_word_embeddings"))
    part["tie_word_embeddings"] = *whole.find("tie_word_embeddings");
  return part;
}

}  // namespace

void read_hf_rope(const HfFields& file, ModelConfig& config, const HfRopeRules& rules) {
  config.ropes = {RopeSection(file, rules, config).read()};
}

void read_hf_ropes(const HfFields& file, ModelConfig& config, const HfRopeRules& rules,
                   const std::vector<bool>& sliding, double sliding_base) {
  config.ropes = {RopeSection(file, rules, config, "full_attention").read()};
  const json* sections = file.find("rope_parameters");
  if (sections != nullptr && sections->is_object() && sections->contains("sliding_attention"))
    config.ropes.push_back(
        RopeSection(file, {.base = sliding_base, .partial = rules.partial}, config, "sliding_attention")
            .read());
  else if (!(sliding_base > 1))
    refuse("{}: the base of local rotary positions is {}; it must be above 1", file.source(), sliding_base);
  else
    config.ropes.push_back(plain_rope(sliding_base, config.rotary_dim));
  for (size_t i = 0; i < sliding.size(); ++i)
    if (sliding[i]) config.layers[i].rope = 1;
}

float read_hf_cap(const HfFields& file, const char* key, float fallback) {
  return factor(file, key, file.says_null(key) ? 0 : fallback);
}

void check_hf_activation(const HfFields& file, std::string_view name) {
  const char* key = file.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  if (const std::string found = file.text(key, std::string(name)); found != name)
    refuse("{}: \"{}\": activation {} is not supported for this model (supported: {})", file.source(), key,
           shown(found), name);
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

void read_hf_experts(const HfFields& file, ModelConfig& config,
                     std::initializer_list<const char*> count_keys) {
  Experts& experts = config.experts;
  const auto* key = std::ranges::find_if(count_keys, [&](const char* each) { return file.has(each); });
  experts.count = count(file, key == count_keys.end() ? *count_keys.begin() : *key);
  experts.per_token = count(file, "num_experts_per_tok");
  experts.ffn = count(file, "moe_intermediate_size", config.ffn);
  experts.normalized = file.boolean("norm_topk_prob", false);
  const int64_t step = count(file, "decoder_sparse_step", 1),
                dense = file.integer("first_k_dense_replace", 0);
  for (size_t i = 0; i < config.layers.size(); ++i)
    config.layers[i].experts = (static_cast<int64_t>(i) + 1) % step == 0 && std::cmp_greater_equal(i, dense);
  const json* only = file.find("mlp_only_layers");
  if (only == nullptr) return;
  if (!only->is_array()) refuse("{}: \"mlp_only_layers\" must be a list of layers", file.source());
  for (const json& layer : *only) {
    if (!layer.is_number_unsigned() || layer.get<uint64_t>() >= config.layers.size())
      refuse("{}: \"mlp_only_layers\" contains {}; it must be a list of layers from 0 to {}", file.source(),
             shown_json(layer), config.layers.size() - 1);
    config.layers[layer.get<size_t>()].experts = false;
  }
}

std::vector<bool> sliding_hf_layers(const HfFields& file, const ModelConfig& config,
                                    const HfWindowRules& rules) {
  const json* types = file.find("layer_types");
  std::vector<bool> sliding(config.layers.size());
  for (size_t i = 0; i < sliding.size(); ++i) {
    const bool every = rules.period == 0 || (i + 1) % static_cast<size_t>(rules.period) != 0;
    sliding[i] = types != nullptr ? types->at(i) == "sliding_attention"
                                  : every && std::cmp_greater_equal(i, rules.first);
  }
  return sliding;
}

void read_hf_windows(const HfFields& file, ModelConfig& config, const HfWindowRules& rules) {
  const int32_t window = count(file, "sliding_window", file.says_null("sliding_window") ? 0 : rules.window);
  const std::vector<bool> sliding = sliding_hf_layers(file, config, rules);
  const bool slides = std::ranges::find(sliding, true) != sliding.end();
  if (window == 0 && slides && file.has("layer_types"))
    refuse("{}: \"layer_types\" names sliding layers, but \"sliding_window\" is missing", file.source());
  if (window >= std::max(config.context, config.long_context)) return;  // nothing lies outside
  for (size_t i = 0; i < sliding.size(); ++i)
    if (sliding[i]) config.layers[i].window = window;
}

FileConfig read_hf_config(const std::string& path) {
  constexpr size_t largest = 1 << 20;
  const json object = read_json_object(path, largest);
  const json text = text_part(object, path);
  const bool wrapped = text != object;
  const HfFields fields(text, wrapped ? path + ": \"text_config\"" : path);
  const Family& family = family_of(fields);
  refuse_unsupported(fields, family);
  ModelConfig config = read_sizes(fields, family.defaults);
  check_layer_types(fields, config.layers.size());
  config.family = family.name;
  family.describe(config);
  family.read_hf(fields, config);
  refuse_unread_windows(fields, config);
  check_config(config, path);
  const std::optional<Quantization> quantization = read_quantization(HfFields(object, path), path);
  const int64_t further = std::clamp<int64_t>(fields.integer("num_nextn_predict_layers", 0), 0, kMostLayers);
  return {config, &family, quantization, quantization ? quantization->stored_bits() : 16, further, wrapped};
}

}  // namespace sheaf

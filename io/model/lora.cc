#include "io/model/lora.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/base/error.h"
#include "io/base/json_file.h"
#include "io/model/safetensors.h"

namespace sheaf {
namespace {

using nlohmann::json;

bool is_neutral(const json& value) {
  return value.is_null() || value == false || value == "none" ||
         ((value.is_array() || value.is_object()) && value.empty());
}

void refuse_unless_neutral(const JsonFields& fields, const std::string& key, const json& value) {
  if (!is_neutral(value))
    refuse("{}: {}: {} is not supported", fields.source(), shown(key), shown_json(value));
}

void refuse_unsupported(const JsonFields& fields, const json& object) {
  const std::string kind = fields.text("peft_type");
  if (kind != "LORA")
    refuse("{}: adapter type {} is not supported (supported: LORA)", fields.source(), shown(kind));
  for (const char* key : {"use_dora", "use_qalora", "use_bdlora", "bias", "lora_bias", "modules_to_save",
                          "fan_in_fan_out", "rank_pattern", "alpha_pattern", "layer_replication",
                          "trainable_token_indices", "alora_invocation_tokens"}) {
    if (const json* value = fields.find(key)) refuse_unless_neutral(fields, key, *value);
  }
  if (const json* parameters = fields.find("target_parameters"); parameters && !is_neutral(*parameters))
    for (const json& each : *parameters)
      if (!each.is_string() || !(each.get<std::string>().ends_with("experts.gate_up_proj") ||
                                 each.get<std::string>().ends_with("experts.down_proj")))
        refuse(
            "{}: \"target_parameters\": {} is not supported (supported: experts.gate_up_proj and "
            "experts.down_proj); use \"target_modules\" for linear layers",
            fields.source(), shown_json(each));
  // Every variant of LoRA brings a section of its own.
  for (const auto& [key, value] : object.items()) {
    if (key.ends_with("_config") && key != "megatron_config") refuse_unless_neutral(fields, key, value);
  }
  // Other ways to start change the base weights too, so B A alone would not be the difference.
  if (const json* start = fields.find("init_lora_weights")) {
    if (!start->is_boolean() && *start != "gaussian" && *start != "orthogonal") {
      refuse("{}: \"init_lora_weights\": {} is not supported", fields.source(), shown_json(*start));
    }
  }
}

std::vector<float> read_floats(const std::string& path, const std::string& name, const FileTensor& tensor) {
  if (!tensor.dtype)
    refuse("{}: tensor {} has type {}, which is not supported (supported: {})", path, shown(name),
           tensor.type, readable_types(false));
  refuse_unless_finite(shown(name), tensor);
  std::vector<float> out(static_cast<size_t>(tensor.values()));
  to_f32(*tensor.dtype, tensor.data, tensor.values(), out.data());
  return out;
}

/// Whether PEFT calls all experts of a layer so, where one tensor holds them.
bool is_stacked(const std::string& module) {
  return module.ends_with(".experts") || module.ends_with(".experts.base_layer");
}

}  // namespace

Adapter Adapter::open(const std::string& folder) {
  constexpr size_t largest = 1 << 20;
  const std::filesystem::path base(folder);
  const std::string config_path = (base / "adapter_config.json").string();
  const std::string weights_path = (base / "adapter_model.safetensors").string();
  const json object = read_json_object(config_path, largest);
  const JsonFields fields(object, config_path);
  refuse_unsupported(fields, object);
  const int64_t rank = fields.integer("r");
  if (rank < 1 || rank > 65536)
    refuse("{}: \"r\" is {}; it must be a rank from 1 to 65536", config_path, rank);
  const double alpha = fields.number("lora_alpha");
  const bool root = fields.boolean("use_rslora", false);
  const double scale = alpha / (root ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
  if (!(std::fabs(scale) <= std::numeric_limits<float>::max()))
    refuse("{}: \"lora_alpha\" is {}, which is too large", config_path, alpha);

  if (!std::filesystem::exists(weights_path))
    refuse(
        "{}: no such file; sheaf's wheel has the weights of the default model's adapters only: adapters of "
        "other "
        "models are in configs/adapters of the repository, of the .deb and of the tarball",
        weights_path);
  Adapter adapter;
  adapter.folder_ = folder;
  const SafetensorsFile file = SafetensorsFile::open(weights_path);
  constexpr std::string_view prefix = "base_model.model.";
  constexpr std::string_view a_ending = ".lora_A.weight";
  constexpr std::string_view b_ending = ".lora_B.weight";
  for (const auto& [name, tensor] : file.tensors()) {
    if (!name.starts_with(prefix) || !(name.ends_with(a_ending) || name.ends_with(b_ending))) {
      refuse("{}: tensor {} is not supported (supported: lora_A and lora_B weights of linear layers)",
             weights_path, shown(name));
    }
    if (name.ends_with(b_ending)) continue;
    const std::string module = name.substr(prefix.size(), name.size() - prefix.size() - a_ending.size());
    const std::string b_name = std::string(prefix) + module + std::string(b_ending);
    const auto b = file.tensors().find(b_name);
    if (b == file.tensors().end()) refuse("{}: tensor {} is missing", weights_path, shown(b_name));
    const bool stacked = is_stacked(module);
    if (tensor.shape.size() != 2 || b->second.shape.size() != 2 || b->second.shape[1] != tensor.shape[0] ||
        (stacked ? tensor.shape[0] % rank != 0 : tensor.shape[0] != rank)) {
      refuse("{}: module {}: its lora_A must be [{}, in] and its lora_B [out, {}]", weights_path,
             shown(module), rank, rank);
    }
    auto delta = std::make_shared<LowRank>();
    delta->a = read_floats(weights_path, name, tensor);
    delta->b = read_floats(weights_path, b_name, b->second);
    delta->file = weights_path;
    delta->module = std::string(prefix) + module;
    delta->rank = static_cast<int32_t>(rank);
    delta->scale = static_cast<float>(scale);
    adapter.modules_[module] = {std::move(delta), b->second.shape[0], tensor.shape[1], tensor.shape[0]};
  }
  if (file.tensors().size() != 2 * adapter.modules_.size())
    refuse("{}: a lora_B weight has no lora_A", weights_path);
  if (adapter.modules_.empty()) refuse("{}: the file has no weights", weights_path);
  return adapter;
}

void Adapter::attach(const std::string& module, Matrix& weight) {
  const auto found = modules_.find(module);
  if (found == modules_.end()) return;
  Module& delta = found->second;
  if (delta.rows != weight.rows || delta.cols != weight.cols) {
    refuse("{}: module {} is for a weight of shape [{}, {}], but the model's has [{}, {}]", folder_,
           shown(module), delta.rows, delta.cols, weight.rows, weight.cols);
  }
  weight.adapter = delta.delta;
  delta.used = true;
}

void Adapter::refuse_unused() const {
  for (const auto& [name, module] : modules_) {
    if (!module.used)
      refuse("{}: module {} is not a linear layer of this model that an adapter can change", folder_,
             shown(name));
  }
}

}  // namespace sheaf

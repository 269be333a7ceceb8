#include "io/model/model_config.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/model/shapes.h"
#include "core/text/spelling.h"
#include "io/model/model_files.h"

namespace sheaf {

namespace fs = std::filesystem;

namespace {

constexpr Family kFamilies[] = {
    {.names = {"llama", "LlamaForCausalLM", "llama"}, .paired_gguf = true},
    {.names = {"qwen2", "Qwen2ForCausalLM", "qwen2"}, .qkv_bias = true},
    {.names = {"qwen3", "Qwen3ForCausalLM", "qwen3"}, .qk_norm = QkNorm::per_head, .default_head_dim = 128},
    {.names = {"mistral", "MistralForCausalLM", nullptr}, .paired_gguf = true, .default_window = 4096},
    {.names = {"phi3", "Phi3ForCausalLM", "phi3"}, .fused = true},
    {.names = {"olmo2", "Olmo2ForCausalLM", "olmo2"}, .qk_norm = QkNorm::whole, .post_norm = true},
};

double stored_bits(const Model& model) {
  double bits = 0, values = 0;
  for (const LayerWeights& layer : model.layers) {
    for (const Matrix* matrix : layer.linears()) {
      bits += 8.0 * static_cast<double>(matrix->rows * matrix->row_bytes());
      values += static_cast<double>(matrix->rows * matrix->cols);
    }
  }
  return bits / values;
}

}  // namespace

const Family* find_family(std::string_view name, const char* FamilyNames::*named) {
  const auto* found = std::ranges::find_if(kFamilies, [&](const Family& family) {
    return family.names.*named != nullptr && family.names.*named == name;
  });
  return found == std::end(kFamilies) ? nullptr : found;
}

std::string family_names(const char* FamilyNames::*named) {
  std::string list;
  for (const Family& family : kFamilies)
    if (const char* name = family.names.*named) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

FileConfig read_model_config(const std::string& name, const std::string& from) {
  if (is_shape(name)) return {shape_by_name(name), nullptr};
  const fs::path path(name);
  if (name.ends_with(".json") && fs::is_regular_file(path)) return read_hf_config(name);
  if (fs::is_regular_file(path / "config.json")) return read_hf_config((path / "config.json").string());
  if (fs::exists(path)) {
    const Model model = load_model(name);
    return {model.config, nullptr, {}, stored_bits(model)};
  }
  refuse("{} {}: no file, folder or shape has this name{}", from, shorten_text(name, 400),
         suggest_spelling(path.filename().string(), shape_names()));
}

}  // namespace sheaf

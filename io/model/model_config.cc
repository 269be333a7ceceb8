#include "io/model/model_config.h"

#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/model/shapes.h"
#include "core/text/spelling.h"
#include "io/model/model_files.h"

namespace sheaf {

namespace fs = std::filesystem;

namespace {

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

/// Bits of a weight of the layers as a shape's model is published; 0: 16 of them.
double published_bits(const ModelConfig& config) {
  if (!config.experts.biases) return 0;
  // gpt-oss: experts in MXFP4, which has a scale of 8 bits for 32 values of 4; the rest in bf16.
  const auto all = static_cast<double>(layer_weights(config) + idle_weights(config));
  const auto of_experts = static_cast<double>(expert_layers(config) * config.experts.count) *
                          static_cast<double>(expert_weights(config));
  return (4.25 * of_experts + 16 * (all - of_experts)) / all;
}

}  // namespace

FileConfig read_model_config(const std::string& name, const std::string& from) {
  if (is_shape(name)) {
    ModelConfig config = shape_by_name(name);
    const double bits = published_bits(config);
    return {std::move(config), nullptr, {}, bits};
  }
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

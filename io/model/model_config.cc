#include "io/model/model_config.h"

#include <filesystem>

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

}  // namespace

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

#include <cstring>
#include <filesystem>
#include <optional>

#include "core/base/error.h"
#include "io/base/foreign_files.h"
#include "io/model/ggml_types.h"
#include "io/model/gguf_config.h"
#include "io/model/hf_config.h"
#include "io/model/lora.h"
#include "io/model/model_files.h"
#include "io/model/safetensors.h"
#include "io/model/weights.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

/// The file of a model folder that says where its weights are.
fs::path weights_in(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    if (fs::is_regular_file(folder / name)) return folder / name;
  }
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") found.push_back(entry.path());
  }
  if (found.size() == 1) return found.front();
  if (found.empty())
    refuse(
        "{}: the folder has no *.safetensors; name a folder with config.json and safetensors, or a GGUF file",
        folder.string());
  refuse("{}: the folder has {} *.safetensors files but no model.safetensors.index.json", folder.string(),
         found.size());
}

bool is_gguf(const std::string& path) {
  const auto file = MappedFile::open(path);
  return file->text().starts_with("GGUF") || path.ends_with(".gguf");
}

void load_gguf(const std::string& path, Adapter* adapter, Model& model) {
  const GgufFile file = GgufFile::open(path);
  const FileConfig description = read_gguf_config(file);
  model.config = description.config;
  TensorMap tensors(path, readable_ggml_types());
  for (const GgufTensor& tensor : file.tensors()) {
    tensors.add(tensor.name,
                {ggml_type_name(tensor.type), tensor.dtype, tensor.shape, tensor.data, tensor.size, path});
  }
  load_weights(tensors, description, TensorNaming::gguf, adapter, model);
  model.files.push_back(file.file());
}

void load_hugging_face(const fs::path& config, const fs::path& weights, Adapter* adapter, Model& model) {
  const FileConfig description = read_hf_config(config.string());
  model.config = description.config;
  SafetensorsModel file = open_safetensors_model(weights.string());
  load_weights(file.tensors, description, TensorNaming::hugging_face, adapter, model);
  model.files = std::move(file.files);
}

}  // namespace

Model load_model(const std::string& path, const std::string& adapter) {
  try {
    if (!fs::exists(path)) {
      const std::string advice = download_advice(path, Hosted::model);
      refuse("{}: no such model; name a GGUF file, a safetensors file or a model folder{}{}", path,
             advice.empty() ? "" : "; ", advice);
    }
    std::optional<Adapter> delta;
    if (!adapter.empty()) delta = Adapter::open(adapter);
    Adapter* merged = delta ? &*delta : nullptr;
    Model model;
    model.path = path;
    if (fs::is_directory(path)) {
      load_hugging_face(fs::path(path) / "config.json", weights_in(path), merged, model);
    } else if (is_gguf(path)) {
      load_gguf(path, merged, model);
    } else if (path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json")) {
      load_hugging_face(fs::path(path).parent_path() / "config.json", path, merged, model);
    } else {
      refuse("{}: this is neither a GGUF file, a safetensors file nor a model folder", path);
    }
    return model;
  } catch (const fs::filesystem_error& error) {
    refuse("{}: {}", path, error.what());
  }
}

}  // namespace sheaf

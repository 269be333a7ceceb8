#pragma once
#include <optional>
#include <string>

#include "core/model/config.h"
#include "io/model/family.h"
#include "io/model/gguf.h"
#include "io/model/quantization.h"

namespace sheaf {

/// What a model file says about the model before its tensors are looked at.
struct FileConfig {
  ModelConfig config;
  const Family* family = nullptr;
  std::optional<Quantization> quantization = {};
  double stored_bits = 0;  ///< of a weight of the layers; 0: unknown
  int64_t further = 0;     ///< layers after the last that predict further tokens; they are left out
  bool wrapped = false;    ///< the text model is a part of the file's, as in models that see
};

/// Reads a Hugging Face config.json; refuses, by name, what sheaf would compute differently.
FileConfig read_hf_config(const std::string& path);

/// Reads the model's description from a GGUF file's metadata and rope tensors; refuses, by name, what sheaf
/// would compute differently.
FileConfig read_gguf_config(const GgufFile& gguf);

/// A model's description by the name of a shape, from a config.json or a folder with one, or from a model's
/// files; only a config.json says the family. `from`: where the name was asked for.
FileConfig read_model_config(const std::string& name, const std::string& from = "model");

}  // namespace sheaf

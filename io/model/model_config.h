#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/model/config.h"
#include "io/model/gguf.h"
#include "io/model/quantization.h"

namespace sheaf {

/// What a model family is called in files.
struct FamilyNames {
  const char* config;        ///< "model_type" of config.json, and ModelConfig::family
  const char* architecture;  ///< "architectures" of config.json
  const char* gguf;          ///< "general.architecture" of a GGUF file; null: its files say llama
};

/// Where a model family differs from plain Llama.
struct Family {
  FamilyNames names;
  bool paired_gguf = false;       ///< GGUF files hold the rows of q and k pair by pair
  bool qkv_bias = false;          ///< queries, keys and values have biases
  bool fused = false;             ///< q, k, v in one tensor, gate and up in one tensor
  QkNorm qk_norm = QkNorm::none;  ///< as in ModelConfig
  bool post_norm = false;         ///< as in ModelConfig
  int32_t default_head_dim = 0;   ///< where config.json says nothing; 0: hidden / heads
  int32_t default_window = 0;     ///< sliding window where config.json says nothing; 0: none
};

/// What a model file says about the model before its tensors are looked at.
struct FileConfig {
  ModelConfig config;
  const Family* family = nullptr;
  std::optional<Quantization> quantization = {};
  double stored_bits = 0;  ///< of a weight of the layers; 0: unknown
};

/// The family with this name in config.json, or in GGUF files; null where sheaf does not know it.
const Family* find_family(std::string_view name, const char* FamilyNames::*named);
/// "llama, qwen2, ...".
std::string family_names(const char* FamilyNames::*named);

/// Reads a Hugging Face config.json; refuses, by name, what sheaf would compute differently.
FileConfig read_hf_config(const std::string& path);

/// Reads the model's description from a GGUF file's metadata and rope tensors; refuses, by name, what sheaf
/// would compute differently.
FileConfig read_gguf_config(const GgufFile& gguf);

/// A model's description by the name of a shape, from a config.json or a folder with one, or from a model's
/// files; only a config.json says the family. `from`: where the name was asked for.
FileConfig read_model_config(const std::string& name, const std::string& from = "model");

}  // namespace sheaf

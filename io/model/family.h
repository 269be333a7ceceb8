#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/model/config.h"
#include "io/model/quantization.h"

namespace sheaf {

/// What a model family is called in files and where it differs from plain Llama.
struct Family {
  const char* name;          ///< "model_type" of config.json, and ModelConfig::family
  const char* architecture;  ///< "architectures" of config.json
  const char* gguf;          ///< "general.architecture" of a GGUF file; null: its files say llama
  QkNorm qk_norm;
  bool post_norm;
  bool qkv_bias;
  bool fused;                ///< q, k, v in one tensor, gate and up in one tensor
  bool paired_gguf;          ///< GGUF files hold the rows of q and k pair by pair
  int32_t default_head_dim;  ///< where config.json says nothing; 0: hidden / heads
  int32_t default_window;    ///< sliding window where config.json says nothing; 0: none
};

/// What a model file says about the model before its tensors are looked at.
struct FileConfig {
  ModelConfig config;
  const Family* family = nullptr;
  std::optional<Quantization> quantization = {};
  double stored_bits = 0;  ///< of a weight of the layers; 0: unknown
};

/// Null where sheaf does not know it.
const Family* find_hf_family(std::string_view model_type);
const Family* find_gguf_family(std::string_view architecture);

/// "llama, qwen2, ...".
std::string hf_family_names();
std::string gguf_family_names();

}  // namespace sheaf

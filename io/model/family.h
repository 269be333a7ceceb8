#pragma once
#include <string>
#include <string_view>

#include "core/model/config.h"
#include "io/model/gguf_fields.h"
#include "io/model/hf_fields.h"

namespace sheaf {

/// Where Hugging Face checkpoints keep experts, after the number of the layer. GGUF files call them alike in
/// all families.
struct ExpertTensors {
  const char* router = "mlp.gate";
  const char* experts = "mlp.experts.";  ///< before the number of one; its matrices after that:
  const char* gate = "gate_proj";
  const char* up = "up_proj";
  const char* down = "down_proj";
  const char* gate_up = nullptr;   ///< or: gates and ups of all experts in one tensor,
  const char* all_down = nullptr;  ///< and their downs in another
  bool in_turns = false;           ///< or: as io/model/experts_in_turns.h says, under `experts`
  const char* shared = "mlp.shared_expert.";
  const char* shared_gate = "mlp.shared_expert_gate";
};

/// How the files of a family hold its weights, where they differ from Llama's.
struct FamilyTensors {
  // Norms of a layer in Hugging Face checkpoints; GGUF files call all but one alike in all families.
  const char* pre_attention_norm = "input_layernorm";
  const char* post_attention_norm = "post_attention_layernorm";
  const char* pre_mlp_norm = "post_attention_layernorm";
  const char* post_mlp_norm = "post_feedforward_layernorm";
  const char* gguf_pre_mlp_norm = "ffn_norm";
  bool norms_less_one = false;  ///< Hugging Face checkpoints hold all norms as w - 1
  bool fused_qkv = false;       ///< q, k and v in one tensor
  bool fused_gate_up = false;   ///< gate and up in one tensor
  bool paired_gguf = false;     ///< GGUF files hold the rows of q and k that rotate pair by pair
  bool paired_hf = false;       ///< so do Hugging Face checkpoints
  ExpertTensors experts = {};
};

/// What config.json means where it does not say a size; 0: it must.
struct HfDefaults {
  int32_t heads = 0;
  int32_t kv_heads = 0;  ///< 0: as many as heads
  int32_t head_dim = 0;  ///< 0: hidden / heads
  int32_t vocab = 0;
  int32_t context = 0;
  double norm_eps = 0;
  bool tied_output = false;
};

/// A rotary table for all layers, and windows where the file has them.
inline void read_plain_hf(const HfFields& file, ModelConfig& config) {
  read_hf_rope(file, config);
  read_hf_windows(file, config);
}
inline void read_plain_gguf(const GgufFields& file, ModelConfig& config) {
  read_gguf_rope(file, config);
  read_gguf_windows(file, config);
}

/// A model family: what its files say, and which fields of ModelConfig that becomes. Each is one file of
/// io/model/families, listed in families.cc.
struct Family {
  const char* name;          ///< "model_type" of config.json, and ModelConfig::family
  const char* architecture;  ///< one of "architectures" of config.json
  const char* gguf;          ///< "general.architecture" of a GGUF file; null: its files name another family
  /// Keys of config.json that sheaf refuses elsewhere, unless neutral, and read_hf() turns into fields.
  const char* hf_keys[8] = {};
  /// Keys of GGUF metadata, without the architecture before them, that only read_gguf() of some families
  /// takes.
  const char* gguf_keys[8] = {};
  HfDefaults defaults = {};
  /// Sets what all models of the family have alike.
  void (*describe)(ModelConfig& config) = [](ModelConfig&) {};
  /// Both set the rest, sizes being there already; at least the rotary tables.
  void (*read_hf)(const HfFields& file, ModelConfig& config) = read_plain_hf;
  void (*read_gguf)(const GgufFields& file, ModelConfig& config) = read_plain_gguf;
  FamilyTensors tensors = {};
};

/// The family with this name in config.json, or in GGUF files; null where sheaf does not know it.
const Family* find_family(std::string_view name, const char* Family::*named);
/// "llama, qwen2, ...".
std::string family_names(const char* Family::*named);

}  // namespace sheaf

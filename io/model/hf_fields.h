#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/config.h"
#include "io/base/json_file.h"
#include "io/model/config_fields.h"

namespace sheaf {

/// The fields of a config.json, or of a section of it.
struct HfFields : JsonFields {
  using JsonFields::JsonFields;
  static std::string named(const char* key) { return fmt::format("\"{}\"", key); }
};

/// What a family allows in the rope section of its config.json.
struct HfRopeRules {
  double base = 10000;          ///< where the file does not say
  bool partial = false;         ///< only a part of a head may rotate (partial_rotary_factor)
  double part = 1;              ///< the part where the file does not say
  bool old_long_rope = false;   ///< long-rope may be called "su" or "yarn"
  double original_context = 0;  ///< where the file does not say; 0: the context
};

/// Sets rotary_dim and the rotary table of all layers; raises or lowers the context where the scaling says
/// so.
void read_hf_rope(const HfFields& file, ModelConfig& config, const HfRopeRules& rules = {});

/// Sets rotary_dim and two rotary tables: the first for layers that see all keys, the second for `sliding`
/// ones. They are sections of "rope_parameters"; older files say only the first, and the second is plain,
/// with `sliding_base`.
void read_hf_ropes(const HfFields& file, ModelConfig& config, const HfRopeRules& rules,
                   const std::vector<bool>& sliding, double sliding_base);

/// A cap; 0 where the file says null, `fallback` where it says nothing.
float read_hf_cap(const HfFields& file, const char* key, float fallback);

/// Refuses any activation but the one that `config` has, by "hidden_activation" or else "hidden_act".
void check_hf_activation(const HfFields& file, std::string_view name);

/// A whole number for each layer.
std::vector<int64_t> read_hf_layers(const HfFields& file, const char* key, const ModelConfig& config);

/// Sets experts and the layers that have them: `count_keys` are the names of their number; layers are left
/// out by "mlp_only_layers", "decoder_sparse_step" and "first_k_dense_replace".
void read_hf_experts(const HfFields& file, ModelConfig& config,
                     std::initializer_list<const char*> count_keys);

/// Which layers have the window, where the file has no "layer_types".
struct HfWindowRules {
  int32_t window = 0;  ///< where the file does not say "sliding_window"; 0: none
  int64_t first = 0;   ///< the first layer that has it
  int32_t period = 0;  ///< every so many-th layer has none; 0: all have it
};

/// Which layers slide, by "layer_types" or else the rules.
std::vector<bool> sliding_hf_layers(const HfFields& file, const ModelConfig& config,
                                    const HfWindowRules& rules);

/// Sets the windows of these layers by "sliding_window". Comes after the rotary tables, which may change the
/// context. Refuses sliding layers without a window's size.
void read_hf_windows(const HfFields& file, ModelConfig& config, const HfWindowRules& rules = {});

}  // namespace sheaf

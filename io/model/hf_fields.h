#pragma once
#include <string>
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
  bool old_long_rope = false;   ///< long-rope may be called "su" or "yarn"
  double original_context = 0;  ///< where the file does not say; 0: the context
};

/// Sets rotary_dim and the rotary table of all layers; raises or lowers the context where the scaling says
/// so.
void read_hf_rope(const HfFields& file, ModelConfig& config, const HfRopeRules& rules = {});

/// A whole number for each layer.
std::vector<int64_t> read_hf_layers(const HfFields& file, const char* key, const ModelConfig& config);

/// Caps the context by "sliding_window", or by `fallback` where the file does not say (0: no window). Up to
/// its window, attention is plain.
void read_hf_window(const HfFields& file, ModelConfig& config, int32_t fallback = 0);

}  // namespace sheaf

#pragma once
#include "io/model/family.h"

namespace sheaf {

/// Qwen2 and Qwen3 have a window, in their last layers, only where "use_sliding_window" says so.
inline void read_qwen_hf(const HfFields& file, ModelConfig& config) {
  read_hf_rope(file, config);
  if (file.boolean("use_sliding_window", false))
    read_hf_windows(file, config, {.first = file.integer("max_window_layers", 28)});
}

}  // namespace sheaf

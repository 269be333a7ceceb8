#pragma once
#include "io/model/family.h"

namespace sheaf {

/// GGUF files that are plain but for their experts. `normalized`: where they do not say.
template <bool normalized>
void read_expert_gguf(const GgufFields& file, ModelConfig& config) {
  read_plain_gguf(file, config);
  read_gguf_experts(file, config, normalized);
}

}  // namespace sheaf

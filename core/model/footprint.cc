#include "core/model/footprint.h"

#include "core/base/error.h"

namespace sheaf {

Footprint cpu_footprint(const ModelConfig& config) {
  constexpr int64_t bytes = 4;
  return {bytes * config.layers * config.kv_heads * (config.head_dim + round_up_to_panel(config.head_dim)),
          128};
}

Footprint cuda_footprint(const ModelConfig& config) {
  constexpr int64_t bytes = 2;
  return {2 * bytes * config.layers * config.kv_heads * padded_head_dim(config.head_dim), 8192};
}

int32_t padded_head_dim(int32_t head_dim) {
  for (const int32_t padded : {32, 64, 128, 256})
    if (head_dim <= padded) return padded;
  refuse("heads of {} are too large for the CUDA engine (at most 256); set engine.device: cpu", head_dim);
}

}  // namespace sheaf

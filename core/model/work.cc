#include "core/model/work.h"

#include "core/model/shapes.h"

namespace sheaf {

double gemm_flops(const Work& work, const ModelConfig& config) {
  return 2.0 * static_cast<double>(work.rows) * static_cast<double>(layer_weights(config)) +
         2.0 * static_cast<double>(work.picks) * config.hidden * config.vocab;
}

double attention_flops(const Work& work, const ModelConfig& config) {
  return 4.0 * static_cast<double>(work.keys) * config.layers * config.heads * config.head_dim;
}

double least_seconds(const Work& work, const ModelConfig& config, const PeakRates& rates) {
  return gemm_flops(work, config) / rates.gemm + attention_flops(work, config) / rates.attention;
}

}  // namespace sheaf

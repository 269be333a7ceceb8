#include "core/model/work.h"

#include "core/model/shapes.h"

namespace sheaf {

double layer_flops(const Work& work, const ModelConfig& config) {
  return 2.0 * static_cast<double>(work.rows) * static_cast<double>(layer_weights(config));
}
double output_flops(const Work& work, const ModelConfig& config) {
  return 2.0 * static_cast<double>(work.picks) * config.hidden * config.vocab;
}
double gemm_flops(const Work& work, const ModelConfig& config) {
  return layer_flops(work, config) + output_flops(work, config);
}

double attention_flops(const Work& work, const ModelConfig& config) {
  return 4.0 * static_cast<double>(work.keys) * config.layers * config.heads * config.head_dim;
}

double least_seconds(const Work& work, const ModelConfig& config, const PeakRates& rates) {
  return layer_flops(work, config) / rates.gemm + output_flops(work, config) / rates.output +
         attention_flops(work, config) / rates.attention;
}

}  // namespace sheaf

#pragma once
#include <cstdint>

#include "core/model/shapes.h"

namespace sheaf {

/// What was or must be computed, whatever the machine: the counts that FLOPs follow from.
struct Work {
  int64_t rows = 0;   ///< tokens computed
  int64_t keys = 0;   ///< keys attended to, summed over the rows
  int64_t picks = 0;  ///< rows that reach the output projection

  /// Adds `count` rows in a chain: the first sees `before` keys and itself, each one more than the last.
  void add_chain(int64_t before, int64_t count) {
    rows += count;
    keys += count * before + count * (count + 1) / 2;
  }
};

/// FLOPs of the layers' matrix products, and of the output projection; a multiply-add counts two.
inline double layer_flops(const Work& work, const ModelConfig& config) {
  return 2.0 * static_cast<double>(work.rows) * static_cast<double>(layer_weights(config));
}
inline double output_flops(const Work& work, const ModelConfig& config) {
  return 2.0 * static_cast<double>(work.picks) * config.hidden * config.vocab;
}
/// Both.
inline double gemm_flops(const Work& work, const ModelConfig& config) {
  return layer_flops(work, config) + output_flops(work, config);
}
/// FLOPs of queries times keys and weights times values.
inline double attention_flops(const Work& work, const ModelConfig& config) {
  return 4.0 * static_cast<double>(work.keys) * config.layer_count() * config.heads * config.head_dim;
}

/// FLOP/s that a machine can reach; the default is one H200 in bf16, as measured.
struct PeakRates {
  double gemm = 700e12;  ///< in the layers
  double attention = 600e12;
  double output = 700e12;
};
constexpr PeakRates kFp8Rates{.gemm = 1400e12};  ///< products in FP8; the output projection stays in bf16

/// The least time for `work` at those rates.
inline double least_seconds(const Work& work, const ModelConfig& config, const PeakRates& rates = {}) {
  return layer_flops(work, config) / rates.gemm + output_flops(work, config) / rates.output +
         attention_flops(work, config) / rates.attention;
}

}  // namespace sheaf

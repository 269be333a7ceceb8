#pragma once
#include <cstdint>

#include "core/model/config.h"

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
double layer_flops(const Work& work, const ModelConfig& config);
double output_flops(const Work& work, const ModelConfig& config);
/// Both.
double gemm_flops(const Work& work, const ModelConfig& config);
/// FLOPs of queries times keys and weights times values.
double attention_flops(const Work& work, const ModelConfig& config);

/// FLOP/s that a machine can reach; the default is one H200 in bf16, as measured.
struct PeakRates {
  double gemm = 700e12;  ///< in the layers
  double attention = 600e12;
  double output = 700e12;
};
constexpr PeakRates kFp8Rates{.gemm = 1400e12};  ///< products in FP8; the output projection stays in bf16

/// The least time for `work` at those rates.
double least_seconds(const Work& work, const ModelConfig& config, const PeakRates& rates = {});

}  // namespace sheaf

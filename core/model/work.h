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

/// FLOPs of the matrix products, the output projection included; a multiply-add counts two.
double gemm_flops(const Work& work, const ModelConfig& config);
/// FLOPs of queries times keys and weights times values.
double attention_flops(const Work& work, const ModelConfig& config);

/// FLOP/s that a machine can reach; the default is one H200 in bf16, as measured.
struct PeakRates {
  double gemm = 700e12;
  double attention = 600e12;
};

/// The least time for `work` at those rates.
double least_seconds(const Work& work, const ModelConfig& config, const PeakRates& rates = {});

}  // namespace sheaf

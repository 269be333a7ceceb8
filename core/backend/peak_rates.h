#pragma once
#include "core/model/work.h"

namespace sheaf {

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

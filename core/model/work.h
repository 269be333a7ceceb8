#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "core/model/shapes.h"

namespace sheaf {

/// Layers by the window that their tokens see, 0: all keys. A window as long as the context hides nothing.
using LayerWindows = std::map<int32_t, int64_t>;
inline LayerWindows layer_windows(const ModelConfig& config) {
  LayerWindows windows;
  for (const LayerConfig& layer : config.layers) ++windows[layer.window < config.context ? layer.window : 0];
  return windows;
}

/// What was or must be computed, whatever the machine: the counts that FLOPs follow from.
struct Work {
  int64_t rows = 0;   ///< tokens computed
  int64_t keys = 0;   ///< keys attended to, summed over the rows and the layers
  int64_t picks = 0;  ///< rows that reach the output projection

  /// Adds `count` rows in a chain: the first sees `before` keys and itself, each one more than the last, as
  /// far as a layer's window goes.
  void add_chain(int64_t before, int64_t count, const LayerWindows& windows) {
    rows += count;
    for (const auto& [window, layers] : windows) {
      const int64_t rising = window > 0 ? std::clamp<int64_t>(window - before, 0, count) : count;
      keys += layers * (rising * before + rising * (rising + 1) / 2 + (count - rising) * window);
    }
  }
};

/// Experts of a layer that at least one of `tokens` tokens chooses, on average where all are as likely.
inline double experts_hit(const Experts& experts, double tokens) {
  if (experts.count == 0) return 0;
  const double missed = 1 - static_cast<double>(experts.per_token) / experts.count;
  return experts.count * (1 - std::pow(missed, tokens));
}

/// Tokens that an expert of a layer takes of `tokens` tokens, on average.
inline double tokens_of_expert(const Experts& experts, double tokens) {
  return tokens * experts.per_token / experts.count;
}

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
  return 4.0 * static_cast<double>(work.keys) * config.heads * config.head_dim;
}

}  // namespace sheaf

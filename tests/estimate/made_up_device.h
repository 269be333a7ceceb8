#pragma once
#include <algorithm>

#include "core/estimate/device_model.h"
#include "core/estimate/device_profile.h"
#include "core/model/shapes.h"

namespace sheaf::test {

/// A device that keeps to a plain roofline: 500 TFLOP/s, 2 TB/s, attention at 250 TFLOP/s.
struct MadeUpDevice {
  static constexpr double kFlops = 500e12, kBytes = 2e12;

  static double product(double weights, double rows) {
    return std::max(2 * rows * weights / kFlops, 2 * weights / kBytes);
  }
  static StageSeconds step(const ModelConfig& config, const StepCounts& counts) {
    const double layers = config.layer_count(), weights = static_cast<double>(layer_weights(config)) / layers;
    StageSeconds seconds;
    seconds.products = layers * product(weights, counts.tokens);
    for (const AttentionCounts& each : counts.attention)
      seconds.attention +=
          each.layers * (10e-6 + config.kv_heads * config.head_dim *
                                     std::max(4 * each.cells / (kFlops / 2), 4 * each.keys / kBytes));
    seconds.rest = layers * (5e-6 + 12 * counts.tokens * config.hidden / kBytes);
    if (counts.picks > 0)
      seconds.pick = product(static_cast<double>(config.hidden) * config.vocab, counts.picks);
    return seconds;
  }
  static double host(const StepCounts& counts) { return 2e-4 + 20e-9 * counts.tokens; }

  static DeviceProfile profile() {
    DeviceProfile result{"made up", "made up", "2026-01-31", "0", {}};
    for (const char* shape : {"qwen3-0.6b", "qwen3-1.7b", "qwen3-8b"}) {
      const ModelConfig config = shape_by_name(shape);
      for (const ListedProbe& listed : probes_for_gpu()) {
        const StepCounts counts = count_step(make_probe_batch(listed.probe, 16), config);
        result.measurements.push_back(
            {shape, listed.probe, step(config, counts), host(counts), listed.kind == ProbeKind::held_out});
      }
    }
    return result;
  }
};

}  // namespace sheaf::test

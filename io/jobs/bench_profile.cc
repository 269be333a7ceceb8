#include <algorithm>
#include <ctime>
#include <fmt/chrono.h>
#include <memory>

#include "core/base/error.h"
#include "core/model/shapes.h"
#include "io/base/process.h"
#include "io/files/hardware_file.h"
#include "io/jobs/probe_timer.h"

namespace sheaf {
namespace {

/// Times made-up steps of one model.
class StepTimer {
 public:
  virtual ~StepTimer() = default;
  virtual const Backend& backend() const = 0;
  virtual bool fits(const Probe& probe) const = 0;
  /// Fills in the seconds of the measurement.
  virtual void time(const ListedProbe& listed, Measurement& measured) = 0;
};

/// By the backend's own clocks.
class StagesByBackend final : public StepTimer {
 public:
  explicit StagesByBackend(const BenchModel& model) : timer_(model) {}

  const Backend& backend() const override { return timer_.backend(); }
  bool fits(const Probe& probe) const override { return timer_.fits(probe); }
  void time(const ListedProbe& listed, Measurement& measured) override {
    const StepTime step = timer_.time_step(listed.probe);
    measured.device = step.device;
    measured.host = std::max(0.0, step.wall - step.device.total());
  }

 private:
  ProbeTimer timer_;
};

/// The curve of bare steps at `rows`, straight between its points.
double between(const std::vector<std::pair<double, double>>& curve, double rows) {
  const auto after = std::ranges::find_if(curve, [&](const auto& point) { return point.first >= rows; });
  if (after == curve.begin()) return after->second;
  if (after == curve.end()) return curve.back().second * rows / curve.back().first;
  const auto before = after - 1;
  const double share = (rows - before->first) / (after->first - before->first);
  return before->second + share * (after->second - before->second);
}

/// Stages of a backend that does not time them, from whole steps of models with few layers and with more:
/// what another layer costs, and of it what keys cost beyond rows that see but themselves. Both models have
/// more weights than a cache holds.
class StagesByDifference final : public StepTimer {
 public:
  StagesByDifference(const BenchModel& model, int32_t layers)
      : layers_(layers), few_(with_layers(model, kFew)), more_(with_layers(model, kMore)) {}

  const Backend& backend() const override { return more_.backend(); }
  bool fits(const Probe& probe) const override { return more_.fits(probe); }
  void time(const ListedProbe& listed, Measurement& measured) override {
    const bool bare = listed.kind == ProbeKind::bare;
    const double few = few_.time_step(listed.probe).wall, more = more_.time_step(listed.probe).wall;
    const double layer = std::max(0.0, (more - few) / (kMore - kFew));
    const auto rows = static_cast<double>(listed.probe.rows());
    if (bare) bare_.emplace_back(rows, layer);
    const double products = bare ? layer : std::min(layer, between(bare_, rows));
    measured.device = {layers_ * products, layers_ * (layer - products), 0,
                       std::max(0.0, few - kFew * layer)};
  }

 private:
  static constexpr int32_t kFew = 6, kMore = 18;

  static BenchModel with_layers(BenchModel model, int32_t layers) {
    model.layers = layers;
    return model;
  }

  int32_t layers_;
  ProbeTimer few_, more_;
  std::vector<std::pair<double, double>> bare_;  ///< rows and seconds of a layer, rising
};

}  // namespace

DeviceProfile profile_device(const BenchModel& like, std::vector<std::string> shapes,
                             const std::function<void(const std::string& text)>& left_out,
                             const std::function<void(const std::string& text, bool last)>& progress) {
  const bool cpu = like.device.kind == Device::Kind::cpu;
  if (shapes.empty())
    shapes = cpu ? std::vector<std::string>{"smollm2-135m", "smollm2-360m"}
                 : std::vector<std::string>{"qwen3-0.6b", "qwen3-1.7b", "smollm2-1.7b", "qwen3-8b"};
  DeviceProfile profile;
  profile.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  profile.version = SHEAF_VERSION;
  if (cpu) profile.machine = processor_and_cores();
  profile.precision = like.dtype != Precision::automatic ? like.dtype
                      : cpu                              ? Precision::f32
                                                         : Precision::bf16;
  profile.fp8_keys = like.fp8_keys;
  const ProbeList list = cpu ? probes_for_cpu() : probes_for_gpu();
  for (const std::string& shape : shapes) {
    const ModelConfig config = shape_by_name(shape);
    const KvPrecision keys = like.fp8_keys ? KvPrecision::fp8 : KvPrecision::automatic;
    if (attended_precision(config, keys, false) != keys)
      refuse("--kv-fp8: attention expands the keys of {}; name other --shapes", shape);
    BenchModel model = like;
    model.shape = shape;
    std::unique_ptr<StepTimer> timer;
    try {
      if (cpu)
        timer = std::make_unique<StagesByDifference>(model, config.layer_count());
      else
        timer = std::make_unique<StagesByBackend>(model);
    } catch (const OutOfMemory& error) {
      left_out(fmt::format("{}: left out: {}", shape, error.what()));
      continue;
    }
    for (size_t i = 0; i < list.size(); ++i) {
      const auto& [kind, probe] = list[i];
      if (!timer->fits(probe)) continue;
      profile.measurements.push_back({shape, probe, {}, 0, kind == ProbeKind::held_out});
      timer->time(list[i], profile.measurements.back());
      progress(fmt::format("{}: {} of {} steps", shape, i + 1, list.size()), i + 1 == list.size());
    }
    profile.device = timer->backend().device();
    profile.backend = timer->backend().describe();
  }
  if (profile.measurements.empty())
    refuse("--profile: no shape fits {}; give a smaller one with --shapes", device_text(like.device));
  return profile;
}

}  // namespace sheaf

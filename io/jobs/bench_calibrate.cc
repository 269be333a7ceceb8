#include "io/jobs/bench_calibrate.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>

#include "core/base/error.h"
#include "core/estimate/probe_list.h"
#include "core/model/shapes.h"
#include "io/base/process.h"
#include "io/files/hardware_file.h"
#include "io/jobs/bench_backend.h"
#include "io/jobs/workbench.h"

namespace sheaf {
namespace {

struct StepTime {
  StageSeconds device;  ///< all zero where the backend does not say
  double wall = 0;
};

StageSeconds stages_of(const Backend& backend) {
  StageSeconds seconds;
  for (const auto& [stage, value] : backend.stage_seconds()) {
    if (stage == Stage::attention)
      seconds.attention += value;
    else if (stage == Stage::pick)
      seconds.pick += value;
    else if (stage == Stage::norms || stage == Stage::other)
      seconds.rest += value;
    else
      seconds.products += value;
  }
  return seconds;
}

/// Times one probe after another on a backend.
class ProbeTimer {
 public:
  /// `threads`: that share a processor with others' work; 0: a GPU.
  ProbeTimer(const BenchModel& model, int threads) : made_(model), threads_(threads) {
    most_pages_ = made_.kv_room() / (made_.backend().kv_bytes_per_token() * kPageSize);
  }

  const Backend& backend() { return made_.backend(); }
  bool fits(const Probe& probe) const { return probe.pages(kPageSize) <= most_pages_; }

  StepTime time(const Probe& probe) {
    const StepBatch batch = make_probe_batch(probe, kPageSize);
    const auto pages = static_cast<int32_t>(probe.pages(kPageSize));
    std::vector<Picked> picked(batch.picks.size());
    Backend& backend = made_.backend();
    pages_ = std::max(pages_, pages);
    // A pool made anew also starts the backend's clocks anew; the step before it makes room for activations.
    backend.allocate_kv(pages_, kPageSize);
    backend.step(batch, picked);
    backend.allocate_kv(pages_, kPageSize);
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    double total = 0, undisturbed = kNever, processor = kNever;
    int32_t steps = 0;
    while (steps < kLeastSteps || (total < kSeconds && steps < 1000)) {
      const ProcessUse before = process_use();
      const auto begin = Clock::now();
      backend.step(batch, picked);
      const auto end = Clock::now();
      const ProcessUse after = process_use();
      const double wall = std::chrono::duration<double>(end - begin).count();
      if (after.interruptions == before.interruptions) undisturbed = std::min(undisturbed, wall);
      processor = std::min(processor, after.seconds - before.seconds);
      total = std::chrono::duration<double>(end - start).count();
      ++steps;
    }
    const StageSeconds stages = stages_of(backend) * (1.0 / steps);
    // A GPU's clock falls when it works for long, as it will in a job: there the mean counts.
    if (threads_ == 0) return {stages, total / steps};
    // Where others took the processor in every step, its seconds say more: threads that wait for each other
    // spin.
    return {stages, undisturbed < kNever ? undisturbed : processor / threads_};
  }

 private:
  static constexpr int32_t kLeastSteps = 3;
  static constexpr double kSeconds = 0.15;
  static constexpr double kNever = 1e30;

  BenchBackend made_;
  int threads_;
  int64_t most_pages_ = 0;
  int32_t pages_ = 1;
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
class StagesByDifference {
 public:
  StagesByDifference(const BenchModel& model, int32_t layers) : layers_(layers) {
    BenchModel part = model;
    const int threads = usable_cores().threads();
    part.layers = kFew;
    few_ = std::make_unique<ProbeTimer>(part, threads);
    part.layers = kMore;
    more_ = std::make_unique<ProbeTimer>(part, threads);
  }

  const Backend& backend() { return more_->backend(); }
  bool fits(const Probe& probe) const { return more_->fits(probe); }
  StageSeconds time(const Probe& probe, bool bare) {
    const double few = few_->time(probe).wall, more = more_->time(probe).wall;
    const double layer = std::max(0.0, (more - few) / (kMore - kFew));
    const auto rows = static_cast<double>(probe.rows());
    if (bare) bare_.emplace_back(rows, layer);
    const double products = bare ? layer : std::min(layer, between(bare_, rows));
    return {layers_ * products, layers_ * (layer - products), 0, std::max(0.0, few - kFew * layer)};
  }

 private:
  static constexpr int32_t kFew = 6, kMore = 18;

  int32_t layers_;
  std::unique_ptr<ProbeTimer> few_, more_;
  std::vector<std::pair<double, double>> bare_;  ///< rows and seconds of a layer, rising
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

}  // namespace

Calibration calibrate(const BenchModel& like, std::vector<std::string> shapes,
                      const std::function<void(const std::string& text)>& left_out,
                      const std::function<void(const std::string& text, bool last)>& progress) {
  const bool cpu = like.device.kind == Device::Kind::cpu;
  if (shapes.empty()) {
    if (cpu)
      shapes = {"smollm2-135m", "smollm2-360m"};
    else
      shapes = {"qwen3-0.6b", "qwen3-1.7b", "smollm2-1.7b", "qwen3-8b"};
  }
  Calibration calibration;
  calibration.date = today();
  calibration.version = SHEAF_VERSION;
  if (cpu) calibration.machine = processor_and_cores();
  calibration.precision = like.dtype != Precision::automatic ? like.dtype
                          : cpu                              ? Precision::f32
                                                             : Precision::bf16;
  calibration.fp8_keys = like.fp8_keys;
  for (const std::string& shape : shapes) {
    const ModelConfig config = shape_by_name(shape);
    Job::Engine engine;
    if (like.fp8_keys) engine.kv_dtype = KvPrecision::fp8;
    if (attended_keys(engine, config) != engine.kv_dtype)
      refuse("--kv-fp8: attention expands the keys of {}; name other --shapes", shape);
    BenchModel model = like;
    model.shape = shape;
    const ProbeList list = cpu ? probes_for_cpu() : probes_for_gpu();
    std::unique_ptr<ProbeTimer> timer;
    std::unique_ptr<StagesByDifference> differences;
    try {
      if (cpu)
        differences = std::make_unique<StagesByDifference>(model, config.layers);
      else
        timer = std::make_unique<ProbeTimer>(model, 0);
    } catch (const OutOfMemory& error) {
      left_out(fmt::format("{}: left out: {}", shape, error.what()));
      continue;
    }
    for (size_t i = 0; i < list.size(); ++i) {
      const ListedProbe& listed = list[i];
      Measurement measured{shape, listed.probe, {}, 0, listed.kind == ProbeKind::held_out};
      if (differences) {
        if (!differences->fits(listed.probe)) continue;
        measured.device = differences->time(listed.probe, listed.kind == ProbeKind::bare);
      } else {
        if (!timer->fits(listed.probe)) continue;
        const StepTime step = timer->time(listed.probe);
        measured.device = step.device;
        measured.host = std::max(0.0, step.wall - step.device.total());
      }
      calibration.measurements.push_back(std::move(measured));
      progress(fmt::format("{}: {} of {} steps", shape, i + 1, list.size()), i + 1 == list.size());
    }
    const Backend& backend = timer ? timer->backend() : differences->backend();
    calibration.device = backend.device();
    calibration.backend = backend.describe();
  }
  if (calibration.measurements.empty())
    refuse("--calibrate: no shape fits {}; give a smaller one with --shapes", device_text(like.device));
  return calibration;
}

}  // namespace sheaf

#include <algorithm>
#include <cmath>

#include "core/backend/footprint.h"
#include "core/base/error.h"
#include "core/estimate/device_model.h"
#include "core/model/shapes.h"
#include "core/model/work.h"

namespace sheaf {
namespace {

/// A measured step with what the model looks at.
struct Point {
  const Measurement* measured;
  ModelConfig config;
  StepCounts counts;

  bool bare() const {
    const std::vector<ProbePart>& parts = measured->probe.parts;
    return parts.size() == 1 && parts[0] == ProbePart{1, 0, parts[0].runs, 0, 1};
  }
  bool has_experts() const { return config.experts.count > 0; }
  double layer_weights() const {
    return static_cast<double>(sheaf::layer_weights(config)) / config.layer_count();
  }
  double output_weights() const { return static_cast<double>(config.hidden) * config.vocab; }
};

/// Rows and seconds of products with so many weights.
struct Timed {
  double weights, rows, seconds;
};

class Fit {
 public:
  explicit Fit(const DeviceProfile& profile) {
    for (const Measurement& measured : profile.measurements) {
      Point point{&measured, shape_by_name(measured.shape), {}};
      point.counts = count_step(make_probe_batch(measured.probe, kPageSize), point.config);
      (measured.held_out ? held_out_ : points_).push_back(std::move(point));
    }
    for (const Point& point : points_) {
      if (!point.bare() || !(point.measured->device.products > 0)) continue;
      if (!point.has_experts())
        layers_.push_back({point.layer_weights(), point.counts.tokens,
                           point.measured->device.products / point.config.layer_count()});
      if (point.measured->device.pick > 0)
        outputs_.push_back({point.output_weights(), point.counts.picks, point.measured->device.pick});
    }
    if (layers_.size() < 4 || outputs_.empty())
      refuse(
          "the profile of {} has too few plain steps of models without experts; write it again with sheaf "
          "bench "
          "--profile",
          profile.backend);
  }

  DeviceModel run() {
    for (const Timed& timed : layers_) {
      model_.peak_flops = std::max(model_.peak_flops, 2 * timed.rows * timed.weights / timed.seconds);
      model_.peak_weights = std::max(model_.peak_weights, timed.weights / timed.seconds);
    }
    const auto [fewest, most] =
        std::ranges::minmax(points_, {}, [](const Point& p) { return p.config.layer_count(); });
    model_.fewest_layers = fewest.config.layer_count();
    model_.most_layers = most.config.layer_count();
    model_.layers = curves(layers_);
    model_.outputs = curves(outputs_);
    model_.experts = expert_curves();
    fit_attention();
    fit_rest();
    fit_host();
    model_.error = error(false);
    if (!model_.experts.empty()) model_.expert_error = error(true);
    return model_;
  }

 private:
  std::vector<ShareCurve> curves(std::vector<Timed> timed) const {
    std::ranges::stable_sort(timed, {}, [](const Timed& t) { return std::pair(t.weights, t.rows); });
    std::vector<ShareCurve> curves;
    for (const Timed& t : timed) {
      if (curves.empty() || curves.back().weights != t.weights) curves.push_back({t.weights, {}, {}});
      ShareCurve& curve = curves.back();
      const double log_rows = std::log2(t.rows);
      const double roofline =
          std::max(2 * t.rows * t.weights / model_.peak_flops, t.weights / model_.peak_weights);
      if (!curve.log_rows.empty() && curve.log_rows.back() == log_rows) continue;
      curve.log_rows.push_back(log_rows);
      curve.share.push_back(roofline / t.seconds);
    }
    return curves;
  }

  /// What plain steps of models with experts take beyond what the dense curves say of their other products.
  std::vector<ShareCurve> expert_curves() const {
    std::vector<const Point*> points;
    for (const Point& point : points_)
      if (point.has_experts() && point.bare() && point.measured->device.products > 0)
        points.push_back(&point);
    const auto place = [](const Point* point) {
      return std::pair(expert_weights(point->config),
                       tokens_of_expert(point->config.experts, point->counts.tokens));
    };
    std::ranges::stable_sort(points, {}, place);
    std::vector<ShareCurve> found;
    for (const Point* point : points) {
      const auto [weights, tokens] = place(point);
      const double seconds =
          (point->measured->device.products - model_.unrouted_seconds(point->config, point->counts.tokens)) /
          static_cast<double>(expert_layers(point->config));
      if (seconds <= 0) continue;  // lost in the noise
      if (found.empty() || found.back().weights != static_cast<double>(weights))
        found.push_back({static_cast<double>(weights), {}, {}});
      ShareCurve& curve = found.back();
      if (!curve.log_rows.empty() && curve.log_rows.back() == std::log2(tokens)) continue;
      curve.log_rows.push_back(std::log2(tokens));
      curve.share.push_back(model_.expert_roofline(point->config, point->counts.tokens) / seconds);
    }
    return found;
  }

  /// How far off a stage is over all points, as shares of their whole steps.
  double loss(double StageSeconds::*stage,
              double (DeviceModel::*predicted)(const ModelConfig&, const StepCounts&) const) const {
    double sum = 0;
    for (const Point& point : points_) {
      const StageSeconds& measured = point.measured->device;
      const double off =
          ((model_.*predicted)(point.config, point.counts) - measured.*stage) / measured.total();
      sum += off * off;
    }
    return sum;
  }

  /// Finds the numbers that `set` takes, from `start` on, for which `loss` is least.
  template <class Set, class Loss>
  static void fit(const std::vector<double>& start, const Set& set, const Loss& loss) {
    set(least(start, [&](const std::vector<double>& values) {
      set(values);
      return loss();
    }));
  }

  void fit_attention() {
    const double flop = 1 / model_.peak_flops;
    fit(
        {1e-5, 1e-8, 1e-9, 4 * flop, 2 * flop, 1 / model_.peak_weights},
        [&](const std::vector<double>& v) { model_.attention = {v[0], v[1], v[2], v[3], v[4], v[5]}; },
        [&] { return loss(&StageSeconds::attention, &DeviceModel::attention_seconds); });
  }

  void fit_rest() {
    if (std::ranges::none_of(points_, [&](const Point& p) { return p.measured->device.rest > 0; })) return;
    fit(
        {1e-6, 1e-10, 6 / model_.peak_weights},
        [&](const std::vector<double>& v) {
          model_.rest = {v[0], v[1], v[2]};
        },
        [&] { return loss(&StageSeconds::rest, &DeviceModel::rest_seconds); });
  }

  void fit_host() {
    if (std::ranges::none_of(points_, [](const Point& p) { return p.measured->host > 0; })) return;
    fit(
        {1e-4, 1e-8, 1e-8},
        [&](const std::vector<double>& v) {
          model_.host = {v[0], v[1], v[2]};
        },
        [&] {
          double sum = 0;
          for (const Point& point : points_) {
            if (!(point.measured->host > 0)) continue;
            const double off = std::log(model_.host_seconds(point.counts) / point.measured->host);
            sum += off * off;
          }
          return sum;
        });
  }

  double error(bool experts) const {
    std::vector<double> off;
    for (const std::vector<Point>* points : {&held_out_, &points_}) {
      for (const Point& point : *points)
        if (point.has_experts() == experts)
          off.push_back(
              std::abs(model_.step(point.config, point.counts).total() / point.measured->device.total() - 1));
      if (!off.empty()) break;
    }
    std::ranges::sort(off);
    return off[off.size() * 9 / 10];
  }

  std::vector<Point> points_, held_out_;
  std::vector<Timed> layers_, outputs_;
  DeviceModel model_;
};

}  // namespace

std::vector<double> least(std::vector<double> start,
                          const std::function<double(const std::vector<double>&)>& loss) {
  std::vector<double> best = std::move(start);
  double least_loss = loss(best);
  auto better = [&](size_t i, double value) {
    std::vector<double> tried = best;
    tried[i] = value;
    const double loss_there = loss(tried);
    if (!(loss_there < least_loss)) return false;
    least_loss = loss_there;
    best = std::move(tried);
    return true;
  };
  for (const double factor : {8.0, 3.0, 1.7, 1.3, 1.1, 1.03, 1.01}) {
    bool moved = true;
    for (int round = 0; moved && round < 200; ++round) {
      moved = false;
      for (size_t i = 0; i < best.size(); ++i) {
        if (better(i, best[i] * factor) || better(i, best[i] / factor)) moved = true;
      }
    }
  }
  for (size_t i = 0; i < best.size(); ++i) better(i, 0);
  return best;
}

DeviceModel fit_device(const DeviceProfile& profile) {
  return Fit(profile).run();
}

}  // namespace sheaf

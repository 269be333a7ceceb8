#pragma once
#include <algorithm>
#include <deque>
#include <functional>

#include "core/engine/backend.h"
#include "core/estimate/device_profile.h"
#include "core/model/config.h"

namespace sheaf {

/// What attention goes over in a layer, for each key/value head. Queries are rows × the query heads that
/// share it.
struct AttentionCounts {
  double layers = 0;  ///< layers of the model that attend so
  double pairs = 0;   ///< query and key, each that one sees
  double cells = 0;   ///< pairs computed in blocks of 64 queries, empty ones included
  double spans = 0;   ///< spans with a key that is seen
  double keys = 0;    ///< keys read, each span once
};

/// What a step's time follows from, besides the model.
struct StepCounts {
  double tokens = 0;
  double decode_tokens = 0;  ///< tokens of answers
  double picks = 0;
  double blocks = 0;                       ///< of 64 queries, at least
  double looks = 0;                        ///< rows of all tiles, for each window: what planning goes over
  std::vector<AttentionCounts> attention;  ///< one for each window that layers have
};

StepCounts count_step(const StepBatch& batch, const ModelConfig& config);

/// Matrix products of one size over the number of rows: the share of the roofline that they reach.
struct ShareCurve {
  double weights = 0;  ///< of the matrices
  std::vector<double> log_rows;
  std::vector<double> share;  ///< [log_rows], of max(FLOPs / peak, weights / reading)

  double at(double log_of_rows) const;
};

/// How long steps take on a device: a roofline with the efficiencies that a profile found. It knows
/// nothing of methods or workloads. Tokens are taken to choose all experts equally often.
struct DeviceModel {
  double peak_flops = 0;            ///< the best rate of products that was seen
  double peak_weights = 0;          ///< weights read a second, the best seen
  std::vector<ShareCurve> layers;   ///< by weights of a layer
  std::vector<ShareCurve> outputs;  ///< the output projection and choice, by its weights
  /// Products of a layer's experts, by the weights of one, over the tokens of one; empty: not measured, and
  /// dense ones stand for them.
  std::vector<ShareCurve> experts;

  /// Seconds of attention of a layer: fixed + max(blocks, spans, cells and pairs, keys read).
  struct Attention {
    double fixed = 0;
    double block = 0;  ///< a block of queries and key/value head
    double span = 0;   ///< a span and key/value head
    double cell = 0;   ///< a query and key of a block, and dimension of a head
    double pair = 0;   ///< a query and a key it sees, and dimension
    double key = 0;    ///< a key read, and dimension
  } attention;
  /// Seconds of norms and the like in a layer: of any, by its width, and of a value of the residual stream.
  struct Rest {
    double fixed = 0, width = 0, value = 0;
  } rest;
  /// Seconds of the host beside the device: of a step, a row, and a row's look at a span.
  struct Host {
    double fixed = 0, row = 0, look = 0;
  } host;

  double each_step = 0;    ///< seconds besides, of any step
  double each_expert = 0;  ///< seconds besides, of every expert that a token of a layer chose

  double error =
      0;  ///< nine of ten steps that the curves do not come from are no further off than this share
  double expert_error = 0;  ///< like `error`, for steps of models with experts

  int32_t fewest_layers = 0, most_layers = 0;  ///< of the profiled shapes; 0: unknown

  /// How many times smaller or larger than the profiled shapes a model is, in weights of a layer or in
  /// layers.
  double distance(const ModelConfig& config) const;
  /// The error for the model, from that `near` the profiled shapes: beyond four times it grows, for nothing
  /// was measured there.
  double widened(double near, const ModelConfig& config) const;
  /// Whether the model is so far from the profiled shapes that the error grows.
  bool is_far(const ModelConfig& config) const;
  /// Whether products of experts were measured, or the model has none.
  bool measured_experts(const ModelConfig& config) const {
    return config.experts.count == 0 || !experts.empty();
  }

  StageSeconds step(const ModelConfig& config, const StepCounts& counts) const;
  /// Seconds of the experts of one layer.
  double expert_seconds(const ModelConfig& config, double tokens) const;
  /// Seconds of one layer's experts at the device's peaks.
  double expert_roofline(const ModelConfig& config, double tokens) const;
  double product_roofline(double weights, double rows) const;
  /// Of all layers, without experts.
  double unrouted_seconds(const ModelConfig& config, double tokens) const;
  double attention_seconds(const ModelConfig& config, const StepCounts& counts) const;
  double rest_seconds(const ModelConfig& config, const StepCounts& counts) const;
  double host_seconds(const StepCounts& counts) const;

  /// These efficiencies on a device with other peaks.
  DeviceModel scaled(double flops, double bandwidth) const;
};

/// Finds the curves. Refuses a profile that has too few steps for them.
DeviceModel fit_device(const DeviceProfile& profile);

/// What steps are predicted to take, summed as an engine runs them. Where a backend takes two steps at once
/// the host's work on one passes while the other runs.
class PredictedTime final : public StepObserver {
 public:
  PredictedTime(const ModelConfig& config, const DeviceModel& device) : config_(config), device_(device) {}

  /// Costs microseconds.
  void start(const StepBatch& batch) override;
  void finish() override;

  double seconds() const { return now_; }                 ///< until the last step was finished
  const StageSeconds& stages() const { return stages_; }  ///< seconds of the device
  double decode_seconds() const { return decode_; }       ///< seconds of decode tokens, without picks
  double host_seconds() const { return std::max(0.0, now_ - stages_.total()); }  ///< while the device waited

 private:
  ModelConfig config_;
  DeviceModel device_;
  StageSeconds stages_;
  double decode_ = 0;
  double now_ = 0, busy_until_ = 0;
  std::deque<double> ends_;  ///< of the steps in flight
};

/// Non-negative numbers, from `start` on, for which `loss` is least: one after the other is made larger,
/// or smaller by ever smaller factors, and made zero where that is better still. For a handful of numbers and
/// a smooth loss.
std::vector<double> least(std::vector<double> start,
                          const std::function<double(const std::vector<double>&)>& loss);

}  // namespace sheaf

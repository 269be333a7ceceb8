#pragma once
#include <map>
#include <vector>

#include "core/estimate/calibration.h"
#include "core/estimate/step_counts.h"
#include "core/model/config.h"

namespace sheaf {

/// Matrix products of one size over the number of rows: the share of the roofline that they reach.
struct ShareCurve {
  double weights = 0;  ///< of the matrices
  std::vector<double> log_rows;
  std::vector<double> share;  ///< [log_rows], of max(FLOPs / peak, weights / reading)

  double at(double log_of_rows) const;
};

/// How long steps take on a device: a roofline with the efficiencies that a calibration found. It knows
/// nothing of methods or workloads.
struct DeviceModel {
  double peak_flops = 0;            ///< the best rate of products that was seen
  double peak_weights = 0;          ///< weights read a second, the best seen
  std::vector<ShareCurve> layers;   ///< by weights of a layer
  std::vector<ShareCurve> outputs;  ///< the output projection and choice, by its weights

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

  double each_step = 0;  ///< seconds besides, of any step

  double error =
      0;  ///< nine of ten steps that the curves do not come from are no further off than this share

  int32_t fewest_layers = 0, most_layers = 0;  ///< of the calibrated shapes; 0: unknown

  /// How many times smaller or larger than the calibrated shapes a model is, in weights of a layer or in
  /// layers.
  double distance(const ModelConfig& config) const;
  /// The error for the model, from that `near` the calibrated shapes: beyond four times it grows, for nothing
  /// was measured there.
  double widened(double near, const ModelConfig& config) const;

  StageSeconds step(const ModelConfig& config, const StepCounts& counts) const;
  double attention_seconds(const ModelConfig& config, const StepCounts& counts) const;
  double rest_seconds(const ModelConfig& config, const StepCounts& counts) const;
  double host_seconds(const StepCounts& counts) const;

  /// The same efficiencies on a device with other peaks.
  DeviceModel scaled(double flops, double bandwidth) const;
};

/// Finds the curves. Refuses a calibration that has too few steps for them.
DeviceModel fit_device(const Calibration& calibration);

}  // namespace sheaf

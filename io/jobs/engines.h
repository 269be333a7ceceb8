#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/estimate/predict.h"
#include "io/jobs/workbench.h"

namespace sheaf {

/// The engines of a job, one for each of its devices, with what their steps are predicted to take where the
/// device has a calibration.
class Engines {
 public:
  using Replace = std::function<std::unique_ptr<Backend>(size_t engine, std::unique_ptr<Backend> backend)>;

  /// `predict`: look for calibrations. `replace`: what is to compute in place of a backend. `speculate`: as
  /// the job says, or not at all.
  Engines(Workbench& bench, bool predict, const Replace& replace = {}, bool speculate = true);

  size_t size() const { return all_.size(); }
  std::vector<Engine*> pointers();
  const Backend& backend(size_t engine) const { return *all_[engine].backend; }
  /// None where its device has no calibration. To be asked on its engine's thread.
  std::optional<double> predicted_seconds(size_t engine) const;
  double predicted_error() const;  ///< as a share
  /// "CPU, fp32, NEON, 2 threads", "NVIDIA H200 (cuda:0), bf16 and 7 more".
  std::string describe() const;
  /// As describe(), of one; engines that are alike are numbered.
  std::string name(size_t engine) const;

 private:
  struct One {
    std::unique_ptr<Backend> backend;
    std::optional<DeviceModel> device = {};
    std::optional<PredictedBackend> predicted = {};
    std::optional<Engine> engine = {};
  };
  std::deque<One> all_;  ///< an engine points to its backend
};

}  // namespace sheaf

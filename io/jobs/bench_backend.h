#pragma once

#include "core/engine/backend.h"
#include "core/job/device.h"
#include "core/job/words.h"
#include "core/model/model.h"

namespace sheaf {

/// What `sheaf bench` computes with: the weights of a model, or random ones of a shape.
struct BenchModel {
  std::string shape;  ///< qwen3-8b, or a path
  std::string path;   ///< of real weights; empty: random ones
  Device device = {};
  bool reproducible = false;
  int32_t layers = 0;  ///< of random weights, where not as the shape has them
  Precision dtype = Precision::automatic;
  WeightStorage weights = WeightStorage::automatic;
  bool fp8_keys = false;
};

/// A backend made ready for timing.
class BenchBackend {
 public:
  explicit BenchBackend(const BenchModel& wanted);

  Backend& backend() const { return *backend_; }
  const ModelConfig& config() const { return backend_->config(); }
  /// Bytes that a key/value pool may take.
  int64_t kv_bytes() const;
  /// Device memory taken since before the weights were made; 0 on the CPU.
  int64_t device_bytes() const;
  double device_seconds() const { return device_seconds_; }    ///< until the device answered
  double weights_seconds() const { return weights_seconds_; }  ///< to load or make the weights

 private:
  int device_ = -1;            ///< CUDA device, -1: the CPU
  int64_t free_at_first_ = 0;  ///< bytes free on the device
  double device_seconds_ = 0, weights_seconds_ = 0;
  Model model_;  ///< on the CPU, or with real weights
  std::unique_ptr<Backend> backend_;
};

}  // namespace sheaf

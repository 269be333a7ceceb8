#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/engine/step_batch.h"
#include "core/model/config.h"

namespace sheaf {

/// What a backend will need, known before its weights are made ready.
struct BackendNeeds {
  int64_t kv_bytes_per_token = 0;
  int32_t preferred_rows = 0;
};

/// Runs step batches of one model. Every backend passes the tests in tests/cpu and tests/engine.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const ModelConfig& config() const = 0;
  /// "CPU, fp32, 2 threads".
  virtual std::string describe() const = 0;

  /// Makes the paged key/value pool; called once, before the first step.
  virtual void allocate_kv(int32_t pages, int32_t page_size) = 0;
  virtual int64_t kv_bytes_per_token() const = 0;

  /// Runs one step. `picked` gets one entry per pick. `logits`, where not empty, receives [picks × vocab].
  virtual void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits = {}) = 0;

  /// Rows a step should hold to keep the machine busy.
  virtual int32_t preferred_rows() const = 0;
};

}  // namespace sheaf

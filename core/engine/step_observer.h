#pragma once
#include "core/engine/step_batch.h"

namespace sheaf {

/// Sees the steps of an engine in their order.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void start(const StepBatch& batch) = 0;
  /// The oldest step that was started is waited for.
  virtual void finish() = 0;
};

}  // namespace sheaf

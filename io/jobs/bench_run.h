#pragma once
#include <vector>

#include "core/engine/engine.h"

namespace sheaf {

/// One timed pass over a workload.
struct BenchRun {
  double engine_seconds = 0;  ///< to make the engine and its key/value pool
  double seconds = 0;
  EngineStats stats;
  int32_t pages = 0;  ///< of the pool, fewer than asked where memory was short
  TimedStages stages;
};

/// Decodes the stacks with an engine of its own, which finds nothing resident of the pass before.
BenchRun run_once(Backend& backend, const EngineOptions& options, std::vector<Stack> stacks);

}  // namespace sheaf

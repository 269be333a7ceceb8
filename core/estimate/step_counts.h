#pragma once
#include <cstdint>

#include "core/engine/step_batch.h"

namespace sheaf {

/// What a step's time follows from, besides the model. Queries are rows × the query heads that share a
/// key/value head; everything about keys is per layer and key/value head.
struct StepCounts {
  double tokens = 0;
  double decode_tokens = 0;  ///< tokens of answers
  double picks = 0;
  double pairs = 0;   ///< query and key, each that one sees
  double cells = 0;   ///< pairs computed in blocks of 64 queries, empty ones included
  double blocks = 0;  ///< of 64 queries, at least
  double spans = 0;   ///< looked at
  double keys = 0;    ///< read, each span once
  double looks = 0;   ///< rows of all tiles: what planning goes over
};

/// `group`: query heads that share a key/value head.
StepCounts count_step(const StepBatch& batch, int32_t group);

}  // namespace sheaf

#include "core/engine/step_batch.h"

namespace sheaf {

void StepBatch::clear() {
  tokens.clear();
  positions.clear();
  kv_slots.clear();
  pages.clear();
  spans.clear();
  tile_rows.clear();
  tiles.clear();
  picks.clear();
  allowed.clear();
}

}  // namespace sheaf

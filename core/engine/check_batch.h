#pragma once
#include <cstdint>

#include "core/engine/step_batch.h"
#include "core/model/config.h"

namespace sheaf {

/// Checks that every index of the batch points inside what it points into, so that a backend may trust them
/// all. Takes time linear in the batch. A malformed batch is a fatal error that names the entry.
void check_batch(const StepBatch& batch, const ModelConfig& config, int32_t pages, int32_t page_size);

}  // namespace sheaf

#pragma once
#include <cstdint>

#include "cuda/loaded_model.h"
#include "cuda/step.h"

namespace sheaf::cuda {

/// The rows before the first layer: their angles, and their tokens' embeddings in the residual stream.
void start_rows(LoadedModel& model, const Step& step);

/// The first `layers` layers.
void run_layers(LoadedModel& model, Step& step, int32_t layers);

}  // namespace sheaf::cuda

#pragma once
#include <cstdint>
#include <span>

#include "core/model/footprint.h"
#include "cuda/loaded_model.h"
#include "cuda/step.h"

namespace sheaf::cuda {

constexpr int64_t kPicksAtOnce = kCudaPicksAtOnce;

/// Picks the tokens of a step whose layers are run: greedy ones go to step.chosen; for those drawn on the
/// host it waits, and they are in step.picked when it returns. `logits`, where not empty, gets [picks,
/// vocab].
void pick_tokens(LoadedModel& model, const Step& step, std::span<float> logits);

}  // namespace sheaf::cuda

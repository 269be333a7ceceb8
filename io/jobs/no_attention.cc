#include "io/jobs/no_attention.h"

#include <algorithm>

namespace sheaf {
namespace {

/// The step with all its rows looking at the first key of its first span.
StepBatch without_attention(StepBatch batch) {
  if (batch.spans.empty()) return batch;
  batch.pages = {batch.pages[static_cast<size_t>(batch.spans[0].first_page)]};
  // A layer's window ends before no row: the key counts as the latest.
  batch.spans = {{0, 1, *std::ranges::max_element(batch.positions)}};
  batch.tile_rows.clear();
  for (int32_t row = 0; row < batch.rows(); ++row) batch.tile_rows.push_back({row, 1});
  batch.tiles = {{0, 0, batch.rows()}};
  return batch;
}

}  // namespace

void NoAttention::step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) {
  backend_.step(without_attention(batch), picked, logits);
}

void NoAttention::start(const StepBatch& batch, std::span<Picked> picked) {
  flying_.push_back(without_attention(batch));
  try {
    backend_.start(flying_.back(), picked);
  } catch (...) {
    flying_.pop_back();
    throw;
  }
}

void NoAttention::finish() {
  const StepBatch over = std::move(flying_.front());
  flying_.pop_front();
  backend_.finish();
}

}  // namespace sheaf

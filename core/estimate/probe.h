#pragma once
#include <cstdint>
#include <vector>

#include "core/engine/step_batch.h"

namespace sheaf {

/// Rows of one kind in a step that is made up to be timed: `groups` × `runs` × `rows` of them. The runs of a
/// group see one trunk of keys, computed before; each run then has `own` keys of its own before its new rows.
struct ProbePart {
  int32_t groups = 1;
  int32_t trunk = 0;
  int32_t runs = 1;
  int32_t own = 0;
  int32_t rows = 1;  ///< one: a decode row, more: prefill

  bool operator==(const ProbePart&) const = default;
  int64_t total_rows() const { return int64_t{groups} * runs * rows; }
};

/// A made-up step. Decode parts come first, as in real steps; the last row of every run is picked, unless
/// `picks` limits that to the last so many.
struct Probe {
  std::vector<ProbePart> parts;
  int32_t picks = INT32_MAX;

  int64_t rows() const;
  int64_t pages(int32_t page_size) const;  ///< of keys and values that it takes
};

/// The step batch of a probe, on pages numbered from 0.
StepBatch make_probe_batch(const Probe& probe, int32_t page_size);

}  // namespace sheaf

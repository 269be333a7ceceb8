#pragma once
#include <cstdint>
#include <span>

#include "core/base/histogram.h"

namespace sheaf {

/// How the tokens of steps were shared out among experts. A pass is one layer with experts in one step.
struct Routing {
  int64_t experts = 0;  ///< experts of a layer; 0: nothing was counted
  int64_t passes = 0;
  int64_t tokens = 0;          ///< choices: each token counts once for each of its experts
  int64_t least_tokens = 0;    ///< sum over passes of the tokens of the expert that had fewest
  int64_t busiest_tokens = 0;  ///< sum over passes of the tokens of the expert that had most
  int64_t idle = 0;            ///< experts that no token chose, summed over passes
  Histogram expert_tokens;     ///< tokens of every expert in every pass

  /// One pass: the tokens of each expert.
  void add(std::span<const int64_t> tokens_of);
  /// Of engines side by side, and of a step that ran in parts.
  Routing& operator+=(const Routing& other);
};

}  // namespace sheaf

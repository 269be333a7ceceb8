#pragma once
#include "cuda/attention/attention.h"

namespace sheaf::cuda {
namespace {

/// The log-sum-exp of scores in base 2, where `high` is what their weights are relative to; -inf: no key.
__device__ inline float log_sum(float high, float sum) {
  return sum > 0 ? high + log2f(sum) : -INFINITY;
}

/// What results are multiplied by where a sink takes its share of the softmax. `sum`: of all keys' weights,
/// relative to `high`. Results of keys are divided by their own sum first, whether they are whole or merged,
/// so that a row has the same bits if only one piece of its block holds keys that it sees.
__device__ inline float share_of_keys(float sum, float sink, float high) {
  return 1 / (sum + exp2f(sink - high));
}

}  // namespace
}  // namespace sheaf::cuda

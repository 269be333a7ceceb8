#pragma once
#include "cuda/attention/attention.h"

namespace sheaf::cuda {
namespace {

/// The logarithm of a sum of weights, in base 2, where `high` is what scores were relative to.
__device__ inline float log_sum(float high, float sum) {
  return sum > 0 ? high + log2f(sum) : -INFINITY;
}

/// What results over the sum of their weights are multiplied by where a sink takes its share of the softmax:
/// `sum`, relative to `high`, is of all keys. Results of keys are divided by their own sum first, whether
/// they are whole or merged, so that a row has the same bits whether its block was cut or not.
__device__ inline float share_of_keys(float sum, float sink, float high) {
  return 1 / (sum + exp2f(sink - high));
}

}  // namespace
}  // namespace sheaf::cuda

#pragma once
#include <memory>

#include "core/engine/backend.h"
#include "core/model/model.h"

namespace sheaf {

BackendNeeds cuda_needs(const ModelConfig& config);

/// bf16 weights, keys and values, fp32 sums and residual stream, on CUDA device `device`.
std::unique_ptr<Backend> make_cuda_backend(const Model& model, int device);

/// The same with random weights made on the device, for benchmarks.
std::unique_ptr<Backend> make_random_cuda_backend(const ModelConfig& config, int device, uint64_t seed);

/// Free bytes on the device.
int64_t cuda_free_bytes(int device);

}  // namespace sheaf

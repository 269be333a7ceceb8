#pragma once
#include "core/model/footprint.h"
#include "cuda/cuda_backend.h"

namespace sheaf::cuda {

/// Refuses what the kernels cannot do, before anything is uploaded.
void check_model(const ModelConfig& config, const CudaOptions& options);

}  // namespace sheaf::cuda

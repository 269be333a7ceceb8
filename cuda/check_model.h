#pragma once
#include "core/model/config.h"
#include "cuda/cuda_backend.h"

namespace sheaf::cuda {

/// The size of a head as the kernels see it: 32, 64, 128 or 256. Refuses larger heads.
int32_t padded_head_dim(int32_t head_dim);

/// Refuses what the kernels cannot do, before anything is uploaded.
void check_model(const ModelConfig& config, const CudaOptions& options);

}  // namespace sheaf::cuda

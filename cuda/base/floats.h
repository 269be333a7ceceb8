#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace sheaf::cuda {

using bf16 = __nv_bfloat16;
/// Queries, keys, values and attention's weights: their errors go straight into scores, and they are never as
/// large as what only bf16 can hold (65,504 is the most; larger ones are cut to it). Same size and speed as
/// bf16, eight times as fine.
using f16 = __half;

}  // namespace sheaf::cuda

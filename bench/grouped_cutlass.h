#pragma once
#include "cuda/gemm/grouped.h"

namespace sheaf::cuda {

/// Device memory that CUTLASS's products for Hopper work in; 0: this GPU is no Hopper.
int64_t cutlass_grouped_bytes(int32_t experts);
int64_t cutlass_grouped_fp8_bytes(int32_t experts);
/// As multiply_grouped(), by CUTLASS's kernel for Hopper, of rows that lie in order. `room`:
/// cutlass_grouped_bytes(), or cutlass_grouped_fp8_bytes(), to work in.
void multiply_grouped_cutlass(const GroupedRows& rows, const bf16* weight, int64_t n, int64_t k,
                              std::byte* room, bf16* out, cudaStream_t stream);
void multiply_grouped_cutlass(const GroupedFp8Rows& rows, const Fp8Weight& weight, int64_t n, int64_t k,
                              std::byte* room, bf16* out, cudaStream_t stream);

}  // namespace sheaf::cuda

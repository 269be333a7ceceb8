#pragma once
#include "cuda/gemm/grouped.h"

namespace sheaf::cuda {

/// Whether the functions below work on the current device and for the sizes of a weight: n and k are
/// multiples of 8, in e4m3 k of 16.
bool grouped_hopper_products(int64_t n, int64_t k);
/// As multiply_grouped() and multiply_grouped_gated(), of rows that lie in order, `gathered` in all. Gates
/// are applied, and in e4m3 rounded, before results leave.
void multiply_grouped_hopper(const GroupedRows& rows, int64_t gathered, const bf16* weight, int64_t n,
                             int64_t k, bf16* out, cudaStream_t stream);
void multiply_grouped_gated_hopper(const Gates& gates, const GroupedRows& rows, int64_t gathered,
                                   const bf16* weight, int64_t ffn, int64_t k, bf16* out,
                                   cudaStream_t stream);
void multiply_grouped_hopper(const GroupedFp8Rows& rows, int64_t gathered, const Fp8Weight& weight, int64_t n,
                             int64_t k, bf16* out, cudaStream_t stream);
void multiply_grouped_gated_hopper(const Gates& gates, const GroupedFp8Rows& rows, int64_t gathered,
                                   const Fp8Weight& weight, int64_t ffn, int64_t k, const Fp8Rows& out,
                                   cudaStream_t stream);

}  // namespace sheaf::cuda

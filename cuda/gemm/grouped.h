#pragma once
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

#include "core/model/config.h"
#include "cuda/base/floats.h"

namespace sheaf::cuda {

/// Rows of a step on their way through the experts of a layer: those of expert e are the gathered rows
/// [offsets[e], offsets[e + 1]). Only the device knows how many these are.
template <class In>
struct Grouped {
  In in;                   ///< [rows, k]
  const int32_t* sources;  ///< [gathered rows], which row of `in` each is; null: they lie there in order
  const int32_t* offsets;  ///< [experts + 1]
  int32_t experts;         ///< at most kMostGroups
};
using GroupedRows = Grouped<const bf16*>;
using GroupedFp8Rows = Grouped<Fp8Rows>;
constexpr int32_t kMostGroups = 512;

/// What becomes of gate and up.
struct Gates {
  Gates(Activation the_activation, const float* the_bias = nullptr)
      : activation(the_activation), bias(the_bias) {}
  Activation activation;
  /// [experts, 2 ffn], added first, in the order of the weight's rows: with Activation::clamped, and there
  /// always.
  const float* bias;
};

/// out [gathered rows, n] = each row × the weight of its expert, rounded. `weight` [experts, n, k]; n and k
/// are multiples of 8, in e4m3 k of 16. A row's sums do not depend on the other rows.
void multiply_grouped(const GroupedRows& rows, const bf16* weight, int64_t n, int64_t k, bf16* out,
                      cudaStream_t stream);
void multiply_grouped(const GroupedFp8Rows& rows, const Fp8Weight& weight, int64_t n, int64_t k, bf16* out,
                      cudaStream_t stream);
/// out [gathered rows, ffn] = activation(gate) × up, the rows of each expert's weight [2 ffn, k] being 8 of
/// gate, 8 of up, and so on. ffn and k are multiples of 8.
void multiply_grouped_gated(const Gates& gates, const GroupedRows& rows, const bf16* weight, int64_t ffn,
                            int64_t k, bf16* out, cudaStream_t stream);
/// In FP8, `out` gets a scale for each block, and align_rows() must follow. The rows of `weight` are as
/// interleave_rows() puts them for e4m3; ffn and k are multiples of 16.
void multiply_grouped_gated(const Gates& gates, const GroupedFp8Rows& rows, const Fp8Weight& weight,
                            int64_t ffn, int64_t k, const Fp8Rows& out, cudaStream_t stream);

/// As multiply_grouped(), by CUTLASS's kernel for Ampere and Ada, of rows that lie in order. `room`:
/// ampere_grouped_bytes(), which are 0 where the program was built without CUTLASS, or the GPU is older.
int64_t ampere_grouped_bytes(int32_t experts);
void multiply_grouped_ampere(const GroupedRows& rows, const bf16* weight, int64_t n, int64_t k,
                             std::byte* room, bf16* out, cudaStream_t stream);

}  // namespace sheaf::cuda

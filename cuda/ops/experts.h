#pragma once
#include <cstdint>
#include <cuda_runtime.h>

#include "core/model/config.h"
#include "cuda/base/floats.h"

namespace sheaf::cuda {

/// The kernels around the products of experts. Pointers are device pointers. How many rows an expert has is
/// known on the device alone, so a graph of a step serves any routes.

constexpr int32_t kMostExperts = 512, kMostChoices = 32;  ///< of a layer, of a row

/// Which experts the rows of a step go through. A gathered row is a row on its way through one expert; those
/// of an expert lie together, in the order of the step's rows.
struct Routes {
  int32_t* experts;  ///< [rows, per_token], the highest score first
  float* weights;    ///< [rows, per_token], of what the experts give
  int32_t* places;   ///< [rows, per_token], the gathered row of a choice
  int32_t* sources;  ///< [gathered rows], the row of the step
  int32_t* offsets;  ///< [experts + 1], the first gathered row of each expert, then the number of all
};

/// A router's logits.
struct RouterLogits {
  const float* values;  ///< [rows, stride]: one for each expert, the gate of the shared MLP, padding
  int32_t stride;
  const float* bias;                  ///< [experts], for the choice alone; or null
  const float* logit_bias = nullptr;  ///< [experts], on the logits; or null
};

/// Fills `experts` and `weights` of routes, as core/model/router.h defines them.
void route(const Experts& experts, const RouterLogits& logits, int32_t rows, const Routes& routes,
           cudaStream_t stream);

/// Fills the rest of them.
void gather_choices(const Experts& experts, int32_t rows, const Routes& routes, cudaStream_t stream);

/// out [count, cols] = the rows of `in` [any rows, cols] that `sources` [count] names; cols is a multiple
/// of 8.
void copy_rows(const bf16* in, const int32_t* sources, int64_t count, int32_t cols, bf16* out,
               cudaStream_t stream);
/// Copies rows in FP8 with their scales; cols is a multiple of 16.
void copy_rows(const Fp8Rows& in, const int32_t* sources, int64_t count, int32_t cols, const Fp8Rows& out,
               cudaStream_t stream);

/// values [gathered rows, cols] += bias [experts, cols] of the expert that each row is of, rounded. cols is a
/// multiple of 8.
void add_expert_biases(const float* bias, const int32_t* offsets, int32_t experts, int64_t gathered,
                       int32_t cols, bf16* values, cudaStream_t stream);

/// What the experts of a layer gave.
struct ExpertSums {
  const bf16* given;    ///< [gathered rows, hidden]
  const float* shared;  ///< [rows, hidden], what the MLP of all rows gave; or null
  /// Logits of the weight of `shared`, one in every `gate_stride` values; null: the weight is 1.
  const float* gates;
  int32_t gate_stride;
  const float* bias = nullptr;  ///< [experts, hidden], on what an expert gave; or null
};

/// out [rows, hidden] = the weighted sum of what a row's experts gave, in the order of their scores, and then
/// of the MLP beside them; or with `add` that much more. `shared` may be `out`. `hidden` is a multiple of 8.
void sum_experts(const ExpertSums& sums, const Routes& routes, int32_t per_token, int32_t rows,
                 int32_t hidden, bool add, float* out, cudaStream_t stream);

}  // namespace sheaf::cuda

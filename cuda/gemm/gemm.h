#pragma once
#include <cstdint>
#include <cuda_runtime.h>

#include "core/model/config.h"
#include "cuda/base/floats.h"
#include "cuda/base/heads.h"

namespace sheaf::cuda {

/// What happens to a matrix product before it leaves the multiprocessor.
enum class Epilogue {
  store,         ///< out [m, n] bf16
  store_floats,  ///< out [m, n] fp32
  swiglu,   ///< out [m, n / 2] bf16 = silu(gate) × up; rows of the weight are 8 of gate, 8 of up, and so on
  geglu,    ///< out [m, n / 2] bf16 = gelu(gate) × up; rows of the weight as for swiglu
  clamped,  ///< as swiglu, with biases and by Activation::clamped; of experts alone
  add,      ///< out [m, n] fp32 += product
  heads,    ///< queries, keys and values to their places: see multiply_heads_hopper
};
__host__ __device__ constexpr bool is_gated(Epilogue epilogue) {
  return epilogue == Epilogue::swiglu || epilogue == Epilogue::geglu || epilogue == Epilogue::clamped;
}
__host__ __device__ constexpr Epilogue gated_by(Activation activation) {
  return activation == Activation::silu        ? Epilogue::swiglu
         : activation == Activation::gelu_tanh ? Epilogue::geglu
                                               : Epilogue::clamped;
}
/// The activation of a gated epilogue.
__host__ __device__ constexpr Activation activation_of(Epilogue epilogue) {
  return epilogue == Epilogue::geglu     ? Activation::gelu_tanh
         : epilogue == Epilogue::clamped ? Activation::clamped
                                         : Activation::silu;
}
/// Whether a bias for each row of the weight is added before the activation.
__host__ __device__ constexpr bool has_bias(Epilogue epilogue) {
  return epilogue == Epilogue::clamped;
}

/// Whether the functions below work on the current device.
bool hopper_products();

/// in [m, k] × weight [n, k]ᵀ by our own kernel; false where this device or these sizes are not for it. `out`
/// is as the epilogue says.
bool multiply_hopper(Epilogue epilogue, const bf16* in, const bf16* weight, int64_t m, int64_t n, int64_t k,
                     void* out, cudaStream_t stream);

/// The product of in [m, k] with the fused q, k and v weights [(heads + 2 kv_heads) × head_dim, k], whose
/// heads go straight to where attention reads them, as place_heads() puts them. Only for heads of 64 or 128
/// that rotate as a whole and have a norm per head or none.
bool multiply_heads_hopper(const bf16* in, const bf16* weight, int64_t m, int64_t k,
                           const HeadTargets& targets, cudaStream_t stream);

/// in [m, k] × weight [n, k]ᵀ in e4m3, as multiply_hopper() computes it in bf16; no gated epilogues, no
/// heads.
bool hopper_fp8_products();
bool multiply_hopper(Epilogue epilogue, const Fp8Rows& in, const Fp8Weight& weight, int64_t m, int64_t n,
                     int64_t k, void* out, cudaStream_t stream);
/// out [m, ffn] = activation(gate) × up, with a scale for each block: align_rows() must follow. The rows of
/// `weight` [2 ffn, k] are as interleave_rows() puts them for e4m3.
bool multiply_gated_hopper(Activation activation, const Fp8Rows& in, const Fp8Weight& weight, int64_t m,
                           int64_t ffn, int64_t k, const Fp8Rows& out, cudaStream_t stream);
bool multiply_heads_hopper(const Fp8Rows& in, const Fp8Weight& weight, int64_t m, int64_t k,
                           const HeadTargets& targets, cudaStream_t stream);

/// The same on any GPU from Ada on (capability 8.9), by the matrix instruction that all of them have.
bool ada_fp8_products();
bool multiply_ada(Epilogue epilogue, const Fp8Rows& in, const Fp8Weight& weight, int64_t m, int64_t n,
                  int64_t k, void* out, cudaStream_t stream);
bool multiply_gated_ada(Activation activation, const Fp8Rows& in, const Fp8Weight& weight, int64_t m,
                        int64_t ffn, int64_t k, const Fp8Rows& out, cudaStream_t stream);

}  // namespace sheaf::cuda

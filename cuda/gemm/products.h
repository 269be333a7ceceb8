#pragma once
#include <memory>
#include <type_traits>

#include "core/backend/footprint.h"
#include "cuda/base/blas.h"
#include "cuda/base/device_memory.h"
#include "cuda/gemm/gemm.h"

namespace sheaf::cuda {

/// What a product is while it waits for what follows it, in a scratch of scratch_tokens(rows) × n bf16
/// values: fp32 where there are few rows, which saves a rounding, else bf16.
constexpr cudaDataType_t scratch_type(int64_t rows) {
  return rows < kWideTokens ? CUDA_R_32F : CUDA_R_16BF;
}

/// Which kernels compute products.
enum class ProductKernels {
  fastest,    ///< ours or cuBLAS's, by the number of rows
  ours,       ///< ours wherever the sizes allow it, so that cuBLAS need not be opened
  only_ours,  ///< refuses other sizes: a row's sums do not depend on how many other rows there are
};

/// The matrix products of a layer with what follows each of them: by our own kernels where they are faster,
/// else by cuBLAS and a kernel for the rest. Weights are [n, k], `in` is [rows, k]; everything runs on one
/// stream.
class Products {
 public:
  explicit Products(ProductKernels kernels, Activation activation = Activation::silu);
  void set_stream(cudaStream_t stream);

  /// out [rows, n] = in [rows, k] × weightᵀ, or with `add` that much more.
  void multiply(const bf16* weight, const bf16* in, int64_t rows, int64_t n, int64_t k, float* out,
                bool add = false);
  /// out [rows, ffn] = activation(gate) × up, the rows of `weight` [2 ffn, k] being 8 of gate, 8 of up, and
  /// so on. `scratch` holds [rows, 2 ffn].
  void gated(const bf16* weight, const bf16* in, int64_t rows, int64_t ffn, int64_t k, void* scratch,
             bf16* out);
  /// Queries, keys and values to where attention reads them. `weight` [(heads + 2 kv_heads) × head_dim, k];
  /// `scratch` holds [rows, (heads + 2 kv_heads) × head_dim]. Returns whether they are in e4m3.
  bool heads(const bf16* weight, const bf16* in, int64_t rows, int64_t k, const HeadTargets& targets,
             void* scratch);

  /// The same in FP8, by our own kernels always.
  void multiply(const Fp8Weight& weight, const Fp8Rows& in, int64_t rows, int64_t n, int64_t k, float* out,
                bool add = false);
  void gated(const Fp8Weight& weight, const Fp8Rows& in, int64_t rows, int64_t ffn, int64_t k, void* scratch,
             const Fp8Rows& out);
  bool heads(const Fp8Weight& weight, const Fp8Rows& in, int64_t rows, int64_t k, const HeadTargets& targets,
             void* scratch);

 private:
  struct CloseBlas {
    void operator()(cublasHandle_t handle) const;
  };
  void open_cublas();
  void by_cublas(const bf16* weight, const bf16* in, int64_t rows, int64_t n, int64_t k, void* out,
                 cudaDataType_t type, bool add);
  bool fixed() const { return kernels_ == ProductKernels::only_ours; }
  /// Whether our kernel is to be tried, given how many rows make it the faster one.
  bool ours(int64_t rows, int64_t pays) const { return kernels_ != ProductKernels::fastest || rows >= pays; }

  ProductKernels kernels_;
  Activation activation_;
  cudaStream_t stream_ = nullptr;
  DeviceMemory<std::byte> workspace_;
  std::unique_ptr<std::remove_pointer_t<cublasHandle_t>, CloseBlas> handle_;  ///< nothing until it is needed
};

}  // namespace sheaf::cuda

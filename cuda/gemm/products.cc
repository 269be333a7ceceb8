#include "cuda/gemm/products.h"

#include "cuda/ops/ops.h"

namespace sheaf::cuda {
namespace {

constexpr size_t kWorkspace = size_t{64} << 20;
// With fewer rows our tiles of 256 x 256 leave multiprocessors idle, and cuBLAS has smaller ones. The
// residual's sum stays with cuBLAS at any size: it reads the old values while it multiplies (bench/layer.cc).
constexpr int64_t kFusedPays = kWideTokens, kNeverPays = INT64_MAX;

void check_blas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail_for_now("cuBLAS: {}: {}", what, cublas().status_text(status));
}

/// A product in FP8. check_model() has refused what our kernels cannot do.
void multiply_fp8(Epilogue epilogue, const Fp8Weight& weight, const Fp8Rows& in, int64_t rows, int64_t n,
                  int64_t k, void* out, cudaStream_t stream) {
  if (!multiply_hopper(epilogue, in, weight, rows, n, k, out, stream) &&
      !multiply_ada(epilogue, in, weight, rows, n, k, out, stream))
    fail("no FP8 product for a weight of {} x {}", n, k);
}

}  // namespace

Products::Products(ProductKernels kernels, Activation activation)
    : kernels_(kernels), activation_(activation) {
  if (fixed() && !hopper_products())
    refuse(
        "engine.reproducible needs a Hopper GPU and a program built for sm_90a; leave it out or use "
        "engine.device: cpu");
  if (!hopper_products()) kernels_ = ProductKernels::fastest;
  if (kernels_ == ProductKernels::fastest) open_cublas();
}

void Products::CloseBlas::operator()(cublasHandle_t handle) const {
  cublas().destroy(handle);
}

void Products::open_cublas() {
  // First, for a handle without it would run on another stream than the rest.
  workspace_.grow(static_cast<int64_t>(kWorkspace));
  cublasHandle_t made = nullptr;
  check_blas(cublas().create(&made), "start");
  handle_.reset(made);
  // Parts of a sum are added in fp32 whatever the result's type.
  check_blas(cublas().set_math_mode(
                 made, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                                 CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
             "math mode");
  set_stream(stream_);
}

void Products::set_stream(cudaStream_t stream) {
  stream_ = stream;
  if (!handle_) return;
  check_blas(cublas().set_stream(handle_.get(), stream), "stream");
  // Setting the stream puts cuBLAS back to a workspace of its own.
  check_blas(cublas().set_workspace(handle_.get(), workspace_.data(), kWorkspace), "workspace");
}

void Products::by_cublas(const bf16* weight, const bf16* in, int64_t rows, int64_t n, int64_t k, void* out,
                         cudaDataType_t type, bool add) {
  if (fixed())
    refuse("engine.reproducible needs weights whose sizes are multiples of 8, but one has {} x {}", n, k);
  if (!handle_) open_cublas();
  const float one = 1, beta = add ? 1 : 0;
  check_blas(cublas().gemm(handle_.get(), CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(n),
                           static_cast<int>(rows), static_cast<int>(k), &one, weight, CUDA_R_16BF,
                           static_cast<int>(k), in, CUDA_R_16BF, static_cast<int>(k), &beta, out, type,
                           static_cast<int>(n), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
             "matrix product");
}

void Products::multiply(const bf16* weight, const bf16* in, int64_t rows, int64_t n, int64_t k, float* out,
                        bool add) {
  const Epilogue epilogue = add ? Epilogue::add : Epilogue::store_floats;
  if (ours(rows, kNeverPays) && multiply_hopper(epilogue, in, weight, rows, n, k, out, stream_)) return;
  by_cublas(weight, in, rows, n, k, out, CUDA_R_32F, add);
}

void Products::gated(const bf16* weight, const bf16* in, int64_t rows, int64_t ffn, int64_t k, void* scratch,
                     bf16* out) {
  if (ours(rows, kFusedPays) &&
      multiply_hopper(gated_by(activation_), in, weight, rows, 2 * ffn, k, out, stream_))
    return;
  by_cublas(weight, in, rows, 2 * ffn, k, scratch, scratch_type(rows), false);
  const auto count = static_cast<int32_t>(rows), width = static_cast<int32_t>(ffn);
  if (scratch_type(rows) == CUDA_R_32F)
    apply_gates(activation_, static_cast<const float*>(scratch), count, width, out, stream_);
  else
    apply_gates(activation_, static_cast<const bf16*>(scratch), count, width, out, stream_);
}

bool Products::heads(const bf16* weight, const bf16* in, int64_t rows, int64_t k, const HeadTargets& targets,
                     void* scratch) {
  if (ours(rows, kFusedPays) && multiply_heads_hopper(in, weight, rows, k, targets, stream_))
    return targets.q8 != nullptr;
  const int64_t n = targets.layout.columns();
  cudaDataType_t type = scratch_type(rows);
  if (ours(rows, kNeverPays) && multiply_hopper(Epilogue::store, in, weight, rows, n, k, scratch, stream_))
    type = CUDA_R_16BF;
  else
    by_cublas(weight, in, rows, n, k, scratch, type, false);
  const auto count = static_cast<int32_t>(rows);
  if (type == CUDA_R_32F)
    place_heads(static_cast<const float*>(scratch), count, targets, stream_);
  else
    place_heads(static_cast<const bf16*>(scratch), count, targets, stream_);
  return false;
}

void Products::multiply(const Fp8Weight& weight, const Fp8Rows& in, int64_t rows, int64_t n, int64_t k,
                        float* out, bool add) {
  multiply_fp8(add ? Epilogue::add : Epilogue::store_floats, weight, in, rows, n, k, out, stream_);
}

void Products::gated(const Fp8Weight& weight, const Fp8Rows& in, int64_t rows, int64_t ffn, int64_t k,
                     void* /*scratch*/, const Fp8Rows& out) {
  if (!multiply_gated_hopper(activation_, in, weight, rows, ffn, k, out, stream_) &&
      !multiply_gated_ada(activation_, in, weight, rows, ffn, k, out, stream_))
    fail("no FP8 product for a weight of {} x {}", 2 * ffn, k);
  align_rows(out, static_cast<int32_t>(rows), static_cast<int32_t>(ffn), stream_);
}

bool Products::heads(const Fp8Weight& weight, const Fp8Rows& in, int64_t rows, int64_t k,
                     const HeadTargets& targets, void* scratch) {
  if (multiply_heads_hopper(in, weight, rows, k, targets, stream_)) return targets.q8 != nullptr;
  const int64_t n = targets.layout.columns();
  auto* qkv = static_cast<bf16*>(scratch);
  multiply_fp8(Epilogue::store, weight, in, rows, n, k, qkv, stream_);
  place_heads(qkv, static_cast<int32_t>(rows), targets, stream_);
  return false;
}

}  // namespace sheaf::cuda

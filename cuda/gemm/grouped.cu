#include "cuda/gemm/grouped_kernel.h"

namespace sheaf::cuda {
namespace {

Factors<bf16> factors_of(const GroupedRows& rows, const bf16* weight, int64_t n, int64_t k) {
  return {rows, weight, nullptr, nullptr, static_cast<int>(n), static_cast<int>(k)};
}

}  // namespace

void multiply_grouped(const GroupedRows& rows, const bf16* weight, int64_t n, int64_t k, bf16* out,
                      cudaStream_t stream) {
  launch<bf16, Epilogue::store>(factors_of(rows, weight, n, k), out, {}, stream);
}

void multiply_grouped_gated(const Gates& gates, const GroupedRows& rows, const bf16* weight, int64_t ffn,
                            int64_t k, bf16* out, cudaStream_t stream) {
  const Factors<bf16> factors = factors_of(rows, weight, 2 * ffn, k);
  if (gates.activation == Activation::silu)
    launch<bf16, Epilogue::swiglu>(factors, out, {}, stream);
  else if (gates.activation == Activation::gelu_tanh)
    launch<bf16, Epilogue::geglu>(factors, out, {}, stream);
  else
    launch<bf16, Epilogue::clamped>(factors, out, {}, stream, gates.bias);
}

}  // namespace sheaf::cuda

#include "cuda/gemm/grouped_kernel.h"

namespace sheaf::cuda {
namespace {

Factors<e4m3> factors_of(const GroupedFp8Rows& rows, const Fp8Weight& weight, int64_t n, int64_t k) {
  return {{rows.in.values, rows.sources, rows.offsets, rows.experts},
          weight.values,
          rows.in.scales,
          weight.scales,
          static_cast<int>(n),
          static_cast<int>(k)};
}

}  // namespace

void multiply_grouped(const GroupedFp8Rows& rows, const Fp8Weight& weight, int64_t n, int64_t k, bf16* out,
                      cudaStream_t stream) {
  launch<e4m3, Epilogue::store>(factors_of(rows, weight, n, k), out, {}, stream);
}

void multiply_grouped_gated(const Gates& gates, const GroupedFp8Rows& rows, const Fp8Weight& weight,
                            int64_t ffn, int64_t k, const Fp8Rows& out, cudaStream_t stream) {
  const Factors<e4m3> factors = factors_of(rows, weight, 2 * ffn, k);
  if (gates.activation == Activation::silu)
    launch<e4m3, Epilogue::swiglu>(factors, nullptr, out, stream);
  else if (gates.activation == Activation::gelu_tanh)
    launch<e4m3, Epilogue::geglu>(factors, nullptr, out, stream);
  else
    launch<e4m3, Epilogue::clamped>(factors, nullptr, out, stream, gates.bias);
}

}  // namespace sheaf::cuda

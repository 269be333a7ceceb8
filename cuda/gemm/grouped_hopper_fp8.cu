#include "cuda/gemm/grouped_hopper_kernel.h"

namespace sheaf::cuda {
namespace {

GroupedFactors<e4m3> factors_of(const GroupedFp8Rows& rows, int64_t gathered, const Fp8Weight& weight,
                                int64_t n, int64_t k, void* out, float* blocks) {
  GroupedWork<e4m3> work{};
  work.in_scales = rows.in.scales;
  work.weight_scales = weight.scales;
  work.out = static_cast<uint8_t*>(out);
  work.blocks = blocks;
  return {rows.in.values, weight.values, rows.offsets, rows.experts, gathered, n, k, work};
}

}  // namespace

void multiply_grouped_hopper(const GroupedFp8Rows& rows, int64_t gathered, const Fp8Weight& weight, int64_t n,
                             int64_t k, bf16* out, cudaStream_t stream) {
  launch_groups<e4m3, Epilogue::store>(factors_of(rows, gathered, weight, n, k, out, nullptr), stream);
}

void multiply_grouped_gated_hopper(const Gates& gates, const GroupedFp8Rows& rows, int64_t gathered,
                                   const Fp8Weight& weight, int64_t ffn, int64_t k, const Fp8Rows& out,
                                   cudaStream_t stream) {
  GroupedFactors<e4m3> factors = factors_of(rows, gathered, weight, 2 * ffn, k, out.values, out.blocks);
  factors.work.bias = gates.bias;
  if (gates.activation == Activation::silu)
    launch_groups<e4m3, Epilogue::swiglu>(factors, stream);
  else if (gates.activation == Activation::gelu_tanh)
    launch_groups<e4m3, Epilogue::geglu>(factors, stream);
  else
    launch_groups<e4m3, Epilogue::clamped>(factors, stream);
}

}  // namespace sheaf::cuda

#include "cuda/gemm/grouped_hopper_kernel.h"

namespace sheaf::cuda {
namespace {

GroupedFactors<bf16> factors_of(const GroupedRows& rows, int64_t gathered, const bf16* weight, int64_t n,
                                int64_t k, bf16* out) {
  GroupedWork<bf16> work{};
  work.out = reinterpret_cast<uint8_t*>(out);
  return {rows.in, weight, rows.offsets, rows.experts, gathered, n, k, work};
}

}  // namespace

bool grouped_hopper_products(int64_t n, int64_t k) {
  static PerDevice<bool> can;
  return n % 8 == 0 && k % 8 == 0 &&
         can.get([] { return hopper_multiprocessors(multiply_groups_kernel<bf16, Epilogue::store>) > 0; });
}

void multiply_grouped_hopper(const GroupedRows& rows, int64_t gathered, const bf16* weight, int64_t n,
                             int64_t k, bf16* out, cudaStream_t stream) {
  launch_groups<bf16, Epilogue::store>(factors_of(rows, gathered, weight, n, k, out), stream);
}

void multiply_grouped_gated_hopper(const Gates& gates, const GroupedRows& rows, int64_t gathered,
                                   const bf16* weight, int64_t ffn, int64_t k, bf16* out,
                                   cudaStream_t stream) {
  GroupedFactors<bf16> factors = factors_of(rows, gathered, weight, 2 * ffn, k, out);
  factors.work.bias = gates.bias;
  if (gates.activation == Activation::silu)
    launch_groups<bf16, Epilogue::swiglu>(factors, stream);
  else if (gates.activation == Activation::gelu_tanh)
    launch_groups<bf16, Epilogue::geglu>(factors, stream);
  else
    launch_groups<bf16, Epilogue::clamped>(factors, stream);
}

}  // namespace sheaf::cuda

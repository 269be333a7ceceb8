#include "cuda/gemm/hopper_kernel.h"

namespace sheaf::cuda {

bool hopper_fp8_products() {
  return multiprocessors_for<e4m3>(16, 16) > 0;
}

bool multiply_hopper(Epilogue epilogue, const Fp8Rows& in, const Fp8Weight& weight, int64_t m, int64_t n,
                     int64_t k, void* out, cudaStream_t stream) {
  if (epilogue == Epilogue::heads || is_gated(epilogue)) return false;
  return run<e4m3>(epilogue,
                   {in.values, weight.values, m, n, k, out, {in.scales, weight.scales, nullptr}, {}}, stream);
}

bool multiply_gated_hopper(Activation activation, const Fp8Rows& in, const Fp8Weight& weight, int64_t m,
                           int64_t ffn, int64_t k, const Fp8Rows& out, cudaStream_t stream) {
  return ffn % 16 == 0 && run<e4m3>(gated_by(activation),
                                    {in.values,
                                     weight.values,
                                     m,
                                     2 * ffn,
                                     k,
                                     out.values,
                                     {in.scales, weight.scales, out.blocks},
                                     {}},
                                    stream);
}

bool multiply_heads_hopper(const Fp8Rows& in, const Fp8Weight& weight, int64_t m, int64_t k,
                           const HeadTargets& targets, cudaStream_t stream) {
  const int64_t n = targets.layout.columns();
  return places(targets.layout) &&
         run<e4m3>(Epilogue::heads,
                   {in.values, weight.values, m, n, k, nullptr, {in.scales, weight.scales, nullptr}, targets},
                   stream);
}

}  // namespace sheaf::cuda

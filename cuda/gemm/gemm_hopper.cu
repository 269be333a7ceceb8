#include "cuda/gemm/hopper_kernel.h"

namespace sheaf::cuda {

bool hopper_products() {
  return multiprocessors_for<bf16>(8, 8) > 0;
}

bool multiply_hopper(Epilogue epilogue, const bf16* in, const bf16* weight, int64_t m, int64_t n, int64_t k,
                     void* out, cudaStream_t stream) {
  // 8 of gate and 8 of up stay together.
  if (epilogue == Epilogue::heads || (is_gated(epilogue) && n % 16 != 0)) return false;
  return run<bf16>(epilogue, {in, weight, m, n, k, out, {}, {}}, stream);
}

bool multiply_heads_hopper(const bf16* in, const bf16* weight, int64_t m, int64_t k,
                           const HeadTargets& targets, cudaStream_t stream) {
  return places(targets.layout) &&
         run<bf16>(Epilogue::heads, {in, weight, m, targets.layout.columns(), k, nullptr, {}, targets},
                   stream);
}

}  // namespace sheaf::cuda

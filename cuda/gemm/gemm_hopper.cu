#include "cuda/gemm/hopper_kernel.h"

namespace sheaf::cuda {

bool hopper_products() {
  return multiprocessors_for<bf16>(8, 8) > 0;
}

bool multiply_hopper(Epilogue epilogue, const bf16* in, const bf16* weight, int64_t m, int64_t n, int64_t k,
                     void* out, cudaStream_t stream) {
  const int multiprocessors = multiprocessors_for<bf16>(n, k);
  if (multiprocessors == 0 || epilogue == Epilogue::heads) return false;
  if (epilogue == Epilogue::swiglu && n % 16 != 0) return false;  // 8 of gate and 8 of up stay together
  const Product<bf16> product{in, weight, m, n, k, out, {}, {}};
  switch (epilogue) {
    case Epilogue::store:
      return launch<bf16, Epilogue::store>(product, multiprocessors, stream);
    case Epilogue::store_floats:
      return launch<bf16, Epilogue::store_floats>(product, multiprocessors, stream);
    case Epilogue::swiglu:
      return launch<bf16, Epilogue::swiglu>(product, multiprocessors, stream);
    default:
      return launch<bf16, Epilogue::add>(product, multiprocessors, stream);
  }
}

bool multiply_heads_hopper(const bf16* in, const bf16* weight, int64_t m, int64_t k,
                           const HeadTargets& targets, cudaStream_t stream) {
  const int64_t n = columns(targets.layout);
  const int multiprocessors = multiprocessors_for<bf16>(n, k);
  return places(targets.layout) && multiprocessors > 0 &&
         launch<bf16, Epilogue::heads>({in, weight, m, n, k, nullptr, {}, targets}, multiprocessors, stream);
}

}  // namespace sheaf::cuda

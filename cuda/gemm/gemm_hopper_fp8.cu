#include "cuda/gemm/hopper_kernel.h"

namespace sheaf::cuda {

bool hopper_fp8_products() {
  return multiprocessors_for<e4m3>(16, 16) > 0;
}

bool multiply_hopper(Epilogue epilogue, const Fp8Rows& in, const Fp8Weight& weight, int64_t m, int64_t n,
                     int64_t k, void* out, cudaStream_t stream) {
  const int multiprocessors = multiprocessors_for<e4m3>(n, k);
  if (multiprocessors == 0) return false;
  const Product<e4m3> product{in.values, weight.values, m, n, k, out, {in.scales, weight.scales, nullptr},
                              {}};
  switch (epilogue) {
    case Epilogue::store:
      return launch<e4m3, Epilogue::store>(product, multiprocessors, stream);
    case Epilogue::store_floats:
      return launch<e4m3, Epilogue::store_floats>(product, multiprocessors, stream);
    case Epilogue::add:
      return launch<e4m3, Epilogue::add>(product, multiprocessors, stream);
    default:
      return false;
  }
}

bool multiply_gated_hopper(const Fp8Rows& in, const Fp8Weight& weight, int64_t m, int64_t ffn, int64_t k,
                           const Fp8Rows& out, cudaStream_t stream) {
  const int multiprocessors = multiprocessors_for<e4m3>(2 * ffn, k);
  if (multiprocessors == 0 || ffn % 16 != 0) return false;
  return launch<e4m3, Epilogue::swiglu>(
      {in.values, weight.values, m, 2 * ffn, k, out.values, {in.scales, weight.scales, out.blocks}, {}},
      multiprocessors, stream);
}

bool multiply_heads_hopper(const Fp8Rows& in, const Fp8Weight& weight, int64_t m, int64_t k,
                           const HeadTargets& targets, cudaStream_t stream) {
  const int64_t n = columns(targets.layout);
  const int multiprocessors = multiprocessors_for<e4m3>(n, k);
  return places(targets.layout) && multiprocessors > 0 &&
         launch<e4m3, Epilogue::heads>(
             {in.values, weight.values, m, n, k, nullptr, {in.scales, weight.scales, nullptr}, targets},
             multiprocessors, stream);
}

}  // namespace sheaf::cuda

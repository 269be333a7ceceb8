#include "bench/grouped_cutlass_kernel.h"

namespace sheaf::cuda {
namespace {

struct Bf16 {
  using Value = cutlass::bfloat16_t;
  using TileShape = cute::Shape<cute::_128, cute::_256, cute::_64>;
  using Schedule = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative;
  using Fusion = cutlass::epilogue::fusion::LinearCombination<Result, float>;

  template <class Arguments, class AllParts>
  static void fill(Arguments& fusion, const AllParts& /*parts*/) {
    fusion.alpha = 1;
    fusion.beta = 0;
  }
};

}  // namespace

int64_t cutlass_grouped_bytes(int32_t experts) {
  return room_bytes<Bf16>(experts);
}

void multiply_grouped_cutlass(const GroupedRows& rows, const bf16* weight, int64_t n, int64_t k,
                              std::byte* room, bf16* out, cudaStream_t stream) {
  using Value = Bf16::Value;
  run<Bf16>(
      {reinterpret_cast<const Value*>(rows.in), nullptr, reinterpret_cast<const Value*>(weight), nullptr,
       rows.offsets, rows.experts, static_cast<int>(n), static_cast<int>(k), reinterpret_cast<Result*>(out)},
      room, stream);
}

}  // namespace sheaf::cuda

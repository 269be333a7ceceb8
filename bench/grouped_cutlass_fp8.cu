// In e4m3 with a scale for each row and for each row of a weight, both applied by the epilogue. Sums stay in
// the matrix unit, as those of the dense products do (hopper_kernel.h).
#include "bench/grouped_cutlass_kernel.h"

namespace sheaf::cuda {
namespace {

namespace fusion = cutlass::epilogue::fusion;

struct E4m3 {
  using Value = cutlass::float_e4m3_t;
  using TileShape = cute::Shape<cute::_128, cute::_256, cute::_128>;
  using Schedule = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperativeFP8FastAccum;
  static constexpr auto kRounding = cutlass::FloatRoundStyle::round_to_nearest;
  template <class Out>
  using Times = fusion::Sm90Compute<cutlass::multiplies, Out, float, kRounding>;
  // Pointers: an array with one for each expert.
  using ByRow =
      fusion::Sm90ColBroadcast<0, TileShape, float*, float, cute::Stride<cute::_1, cute::_0, cute::_0>>;
  using ByCol =
      fusion::Sm90RowBroadcast<0, TileShape, float*, float, cute::Stride<cute::_0, cute::_1, cute::_0>>;
  using Columns = fusion::Sm90EVT<Times<float>, ByCol, fusion::Sm90AccFetch>;
  using Fusion = fusion::Sm90EVT<Times<Result>, ByRow, Columns>;

  template <class Arguments, class AllParts>
  static void fill(Arguments& tree, const AllParts& parts) {
    tree = {{parts.in_scales}, {{parts.weight_scales}, {}, {}}, {}};
  }
};

}  // namespace

int64_t cutlass_grouped_fp8_bytes(int32_t experts) {
  return room_bytes<E4m3>(experts);
}

void multiply_grouped_cutlass(const GroupedFp8Rows& rows, const Fp8Weight& weight, int64_t n, int64_t k,
                              std::byte* room, bf16* out, cudaStream_t stream) {
  using Value = E4m3::Value;
  run<E4m3>({reinterpret_cast<const Value*>(rows.in.values), rows.in.scales,
             reinterpret_cast<const Value*>(weight.values), weight.scales, rows.offsets, rows.experts,
             static_cast<int>(n), static_cast<int>(k), reinterpret_cast<Result*>(out)},
            room, stream);
}

}  // namespace sheaf::cuda

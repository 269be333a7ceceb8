#pragma once
// Products of rows with the weights of their experts by CUTLASS on Hopper: its persistent kernel for groups
// of different sizes, whose sizes and addresses a small kernel writes to device memory before. Tiles of 128
// rows × 256 columns, and two blocks of a cluster take neighbouring columns, so that both read the same rows
// and no rows are added to fill a cluster. Rows must lie by expert, and gates are applied by a kernel of
// their own: at 8,192 rows, 8 of 128 experts, hidden 2,048 and experts of 768 wide, both together move 0.9
// GB, 0.2 ms, beside 0.62 TFLOP.
//
// No sum is split among blocks, so a row's sums do not depend on the other rows.
//
// Each file that includes this defines `Kinds` for its numbers: what CUTLASS is given besides the tile.
#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/sm90_callbacks_tma_warpspecialized.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/group_array_problem_shape.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <stdexcept>
#include <string>

#include "bench/grouped_cutlass.h"
#include "cuda/base/launch.h"
#include "cuda/gemm/shelf.h"

namespace sheaf::cuda {
namespace {

using Sizes = cutlass::gemm::GroupProblemShape<cute::Shape<int, int, int>>;  // rows, n, k of an expert
using OneSize = Sizes::UnderlyingProblemShape;
using ClusterShape = cute::Shape<cute::_1, cute::_2, cute::_1>;
using RowMajor = cutlass::layout::RowMajor;
using Result = cutlass::bfloat16_t;

/// The kernel of `Kinds`: Value (of rows and weights), TileShape, Schedule, Fusion.
template <class Kinds>
struct GroupedGemm {
  using Value = typename Kinds::Value;
  using TileShape = typename Kinds::TileShape;
  static constexpr int kUnit = 16 / static_cast<int>(sizeof(Value));  // values of 16 bytes
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, RowMajor*, 8, Result, RowMajor*, 8,
      cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative, typename Kinds::Fusion>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Value, RowMajor*, kUnit, Value,
      cutlass::layout::ColumnMajor*, kUnit, float, TileShape, ClusterShape,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename Epilogue::SharedStorage))>,
      typename Kinds::Schedule>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Sizes, Mainloop, Epilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
};

/// Where each expert's part is, in device memory.
template <class Kernel, class Value>
struct Parts {
  OneSize* sizes;
  const Value** in;
  const Value** weight;
  Result** out;
  typename Kernel::InternalStrideA* in_strides;
  typename Kernel::InternalStrideB* weight_strides;
  typename Kernel::InternalStrideD* out_strides;
  const float** in_scales;      ///< of e4m3
  const float** weight_scales;  ///< of e4m3
};

template <class Kernel, class Value>
Parts<Kernel, Value> take_parts(Shelf& shelf) {
  Parts<Kernel, Value> parts{};
  shelf.take(parts.sizes);
  shelf.take(parts.in);
  shelf.take(parts.weight);
  shelf.take(parts.out);
  shelf.take(parts.in_strides);
  shelf.take(parts.weight_strides);
  shelf.take(parts.out_strides);
  shelf.take(parts.in_scales);
  shelf.take(parts.weight_scales);
  return parts;
}

/// A product as all kinds of numbers have it; `in_scales` and `weight_scales` are null in bf16.
template <class Value>
struct GroupedProduct {
  const Value* in;             ///< [gathered rows, k]
  const float* in_scales;      ///< [gathered rows]
  const Value* weight;         ///< [experts, n, k]
  const float* weight_scales;  ///< [experts, n]
  const int32_t* offsets;      ///< [experts + 1]
  int32_t experts;
  int n, k;
  Result* out;  ///< [gathered rows, n]
};

template <class Kernel, class Value>
__global__ void list_parts(GroupedProduct<Value> product, Parts<Kernel, Value> parts) {
  const int expert = static_cast<int>(threadIdx.x);
  if (expert >= product.experts) return;
  const int64_t first = product.offsets[expert];
  parts.sizes[expert] =
      cute::make_shape(static_cast<int>(product.offsets[expert + 1] - first), product.n, product.k);
  parts.in[expert] = product.in + first * product.k;
  parts.weight[expert] = product.weight + int64_t{expert} * product.n * product.k;
  parts.out[expert] = product.out + first * product.n;
  cute::get<0>(parts.in_strides[expert]) = product.k;
  cute::get<0>(parts.weight_strides[expert]) = product.k;
  cute::get<0>(parts.out_strides[expert]) = product.n;
  parts.in_scales[expert] = product.in_scales + first;
  parts.weight_scales[expert] = product.weight_scales + int64_t{expert} * product.n;
}

template <class Kinds>
int multiprocessors() {
  static PerDevice<int> count;
  return count.get(
      [] { return hopper_multiprocessors(cutlass::device_kernel<typename GroupedGemm<Kinds>::Kernel>); });
}

template <class Kinds, class AllParts>
typename GroupedGemm<Kinds>::Gemm::Arguments arguments_of(int32_t experts, const AllParts& parts) {
  cutlass::KernelHardwareInfo hardware;
  cudaGetDevice(&hardware.device_id);
  hardware.sm_count = multiprocessors<Kinds>();
  typename GroupedGemm<Kinds>::Gemm::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGrouped,
      {experts, parts.sizes, nullptr},
      {parts.in, parts.in_strides, parts.weight, parts.weight_strides},
      {{}, nullptr, nullptr, parts.out, parts.out_strides},
      hardware};
  Kinds::fill(arguments.epilogue.thread, parts);
  return arguments;
}

/// 0 where the kernel cannot run.
template <class Kinds>
int64_t room_bytes(int32_t experts) {
  using Own = GroupedGemm<Kinds>;
  if (multiprocessors<Kinds>() == 0) return 0;
  Shelf shelf(nullptr, experts);
  const auto parts = take_parts<typename Own::Kernel, typename Own::Value>(shelf);
  return shelf.used() +
         static_cast<int64_t>(Own::Gemm::get_workspace_size(arguments_of<Kinds>(experts, parts)));
}

template <class Kinds>
void run(const GroupedProduct<typename Kinds::Value>& product, std::byte* room, cudaStream_t stream) {
  using Own = GroupedGemm<Kinds>;
  Shelf shelf(room, product.experts);
  const auto parts = take_parts<typename Own::Kernel, typename Own::Value>(shelf);
  list_parts<<<1, kMostGroups, 0, stream>>>(product, parts);
  // CUTLASS forgets errors of earlier launches.
  if (const cudaError_t error = cudaPeekAtLastError(); error != cudaSuccess)
    throw std::runtime_error(std::string("CUDA: starting a step: ") + cudaGetErrorString(error));
  const auto arguments = arguments_of<Kinds>(product.experts, parts);
  typename Own::Gemm gemm;
  cutlass::Status status = gemm.initialize(arguments, room + shelf.used(), stream);
  if (status == cutlass::Status::kSuccess) status = gemm.run(stream);
  if (status != cutlass::Status::kSuccess)
    throw std::runtime_error(std::string("CUDA: CUTLASS cannot start the products of experts: ") +
                             cutlassGetStatusString(status));
}

}  // namespace
}  // namespace sheaf::cuda

// Products of rows with the weights of their experts by CUTLASS on Ampere and Ada: its persistent kernel for
// groups of different sizes, whose sizes and addresses a small kernel writes to device memory before, so that
// the host need not know them. Rows must lie by expert.
//
// No sum is split among blocks, so a row's sums do not depend on the other rows.
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/device/gemm_grouped.h>
#include <cutlass/gemm/kernel/default_gemm_grouped.h>
#include <stdexcept>
#include <string>

#include "cuda/base/device_memory.h"
#include "cuda/base/launch.h"
#include "cuda/gemm/grouped.h"
#include "cuda/gemm/shelf.h"

namespace sheaf::cuda {
namespace {

using Value = cutlass::bfloat16_t;
using RowMajor = cutlass::layout::RowMajor;
using Plain =
    cutlass::epilogue::thread::LinearCombination<Value, 8, float, float,
                                                 cutlass::epilogue::thread::ScaleType::OnlyAlphaScaling>;
using Kernel = cutlass::gemm::kernel::DefaultGemmGrouped<
    Value, RowMajor, cutlass::ComplexTransform::kNone, 8, Value, cutlass::layout::ColumnMajor,
    cutlass::ComplexTransform::kNone, 8, Value, RowMajor, float, cutlass::arch::OpClassTensorOp,
    cutlass::arch::Sm80, cutlass::gemm::GemmShape<128, 128, 32>, cutlass::gemm::GemmShape<64, 64, 32>,
    cutlass::gemm::GemmShape<16, 8, 16>, Plain,
    cutlass::gemm::threadblock::GemmBatchedIdentityThreadblockSwizzle, 4,
    cutlass::gemm::kernel::GroupScheduleMode::kDeviceOnly>::GemmKernel;
using Gemm = cutlass::gemm::device::GemmGrouped<Kernel>;

/// Where each expert's part is, in device memory.
struct Parts {
  cutlass::gemm::GemmCoord* sizes;
  Value **in, **weight, **out;
  int64_t *in_strides, *weight_strides, *out_strides;
};

Parts take_parts(Shelf& shelf) {
  Parts parts{};
  shelf.take(parts.sizes);
  shelf.take(parts.in);
  shelf.take(parts.weight);
  shelf.take(parts.out);
  shelf.take(parts.in_strides);
  shelf.take(parts.weight_strides);
  shelf.take(parts.out_strides);
  return parts;
}

__global__ void list_parts(GroupedRows rows, const bf16* weight, int n, int k, bf16* out, Parts parts) {
  const int expert = static_cast<int>(threadIdx.x);
  if (expert >= rows.experts) return;
  const int64_t first = rows.offsets[expert];
  parts.sizes[expert] = {static_cast<int>(rows.offsets[expert + 1] - first), n, k};
  // CUTLASS takes addresses of what it only reads without const.
  parts.in[expert] = reinterpret_cast<Value*>(const_cast<bf16*>(rows.in) + first * k);
  parts.weight[expert] = reinterpret_cast<Value*>(const_cast<bf16*>(weight) + int64_t{expert} * n * k);
  parts.out[expert] = reinterpret_cast<Value*>(out + first * n);
  parts.in_strides[expert] = parts.weight_strides[expert] = k;
  parts.out_strides[expert] = n;
}

/// Blocks that fill this GPU; 0: it cannot run the kernel.
int blocks() {
  static PerDevice<int> count;
  return count.get([] {
    int device = 0, major = 0, multiprocessors = 0;
    check(cudaGetDevice(&device), "naming the device");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
          "asking for the compute capability of the device");
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
          "counting the multiprocessors of the device");
    return major >= 8 ? multiprocessors * Gemm::maximum_active_blocks() : 0;
  });
}

}  // namespace

int64_t ampere_grouped_bytes(int32_t experts) {
  if (blocks() <= 0) return 0;
  Shelf shelf(nullptr, experts);
  take_parts(shelf);
  return shelf.used();
}

void multiply_grouped_ampere(const GroupedRows& rows, const bf16* weight, int64_t n, int64_t k,
                             std::byte* room, bf16* out, cudaStream_t stream) {
  Shelf shelf(room, rows.experts);
  const Parts parts = take_parts(shelf);
  list_parts<<<1, kMostGroups, 0, stream>>>(rows, weight, static_cast<int>(n), static_cast<int>(k), out,
                                            parts);
  // CUTLASS forgets errors of earlier launches.
  if (const cudaError_t error = cudaPeekAtLastError(); error != cudaSuccess)
    throw std::runtime_error(std::string("CUDA: starting a step: ") + cudaGetErrorString(error));
  Gemm gemm;
  cutlass::Status status = gemm.initialize({parts.sizes,
                                            rows.experts,
                                            blocks(),
                                            {1.0f},
                                            parts.in,
                                            parts.weight,
                                            parts.out,
                                            parts.out,
                                            parts.in_strides,
                                            parts.weight_strides,
                                            parts.out_strides,
                                            parts.out_strides},
                                           nullptr, stream);
  if (status == cutlass::Status::kSuccess) status = gemm.run(stream);
  if (status != cutlass::Status::kSuccess)
    throw std::runtime_error(std::string("CUDA: CUTLASS cannot start the products of experts: ") +
                             cutlassGetStatusString(status));
}

}  // namespace sheaf::cuda

// Experts in MXFP4 on the device: whether E4M3 holds them as they are, and their expansion where they do not
// stay packed.
#include "cuda/weights/device_weights.h"

namespace sheaf::cuda {
namespace {

/// Packed rows in one of bf16, or of e4m3, for good.
void expand_whole(DeviceMatrix& matrix, bool narrow) {
  if (narrow)
    matrix.narrow.grow(matrix.values());
  else
    matrix.wide.grow(matrix.values());
  for (const PackedPart& part : matrix.packed) {
    if (narrow)
      expand_rows(part.rows, part.place, matrix.peaks.data(), matrix.narrow.data(), nullptr);
    else
      expand_rows(part.rows, part.place, matrix.wide.data(), nullptr);
  }
  check(cudaDeviceSynchronize(), "expanding MXFP4");
  matrix.packed.clear();
  matrix.peaks = {};
}

}  // namespace

void settle_mxfp4(DeviceExperts& experts, WeightKind kind, Mxfp4Rows& counted) {
  experts.narrow = kind.fp8;
  if (kind.fp8) {
    DeviceMemory<int32_t> count(1);
    check(cudaMemset(count.data(), 0, sizeof(int32_t)), "counting rows of MXFP4");
    for (DeviceMatrix* matrix : {&experts.gate_up, &experts.down}) {
      find_scales(*matrix);
      for (const PackedPart& part : matrix->packed) {
        count_rounded(part.rows, part.place, matrix->peaks.data(), count.data(), nullptr);
        counted.rows += part.rows.rows;
      }
    }
    int32_t inexact = 0;
    check(cudaMemcpy(&inexact, count.data(), sizeof(inexact), cudaMemcpyDeviceToHost),
          "counting rows of MXFP4");
    counted.inexact += inexact;
    experts.narrow = inexact == 0;
    if (!experts.narrow) {
      ++counted.wide_layers;
      for (DeviceMatrix* matrix : {&experts.gate_up, &experts.down}) {
        matrix->scales = {};
        matrix->peaks = {};
      }
      for (PackedPart& part : experts.gate_up.packed) part.place.order = RowOrder::by_eights;
    }
  }
  if (kind.packed) return;
  for (DeviceMatrix* matrix : {&experts.gate_up, &experts.down}) expand_whole(*matrix, experts.narrow);
}

}  // namespace sheaf::cuda

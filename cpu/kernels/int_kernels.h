#pragma once
#include <cstdint>
#include <vector>

#include "core/model/panel.h"

namespace sheaf {

/// What a product of whole numbers takes: rows in groups, and panels.
struct IntFactors {
  const int8_t* a = nullptr;
  int64_t rows = 0;
  const int8_t* b = nullptr;
  int64_t panels = 0;
  int64_t panel_stride = 0;  ///< bytes from a panel to the next
  int64_t chunk_stride = 0;  ///< bytes from a chunk of a panel to the next
  int64_t chunks = 0;
  int planes = 1;
};

/// Products of whole numbers. A vector of floats becomes whole numbers of one or two planes of 8 bits and one
/// scale: x ≈ scale · hi, or x ≈ scale · (256 · hi + lo). Sums of whole numbers are exact, so a product does
/// not depend on the order of its sums, and all kernels give the same bits.
///
/// Vectors lie in groups of `together`, chunk by chunk of 16 inputs, so that an instruction finds what it
/// multiplies side by side: [chunk][plane][16 / step][together][step], where step is what one instruction
/// takes of a vector. Rows of a product lie in groups of `rows_together`; weights in panels, groups of 16.
struct IntKernels {
  static constexpr int64_t kChunk = 16;

  const char* name;
  int64_t step;  ///< 4 or 8
  int64_t rows_together;
  uint8_t row_flip;  ///< bits of every byte of a row that are flipped: 0x80 makes -128 … 127 0 … 255

  /// c[i][16p + j] = row_scales[i] · column_scales[16p + j] · Σₖ a[i][k] · b[p][k][j]. Two planes leave out
  /// lo · lo, which is smaller than what rounding to whole numbers loses.
  void (*multiply)(const IntFactors& factors, const float* row_scales, const float* column_scales,
                   float* const* c);

  /// Adds the sums themselves, of two planes: sums[i][32p + j] += Σₖ hi · hi, sums[i][32p + 16 + j] += Σₖ hi
  /// · lo
  /// + lo · hi.
  void (*add)(const IntFactors& factors, int32_t* const* sums);
};

constexpr int64_t chunks_of(int64_t inputs) {
  return (inputs + IntKernels::kChunk - 1) / IntKernels::kChunk;
}
/// Bytes of a group of `together` vectors.
constexpr int64_t group_bytes(int64_t inputs, int planes, int64_t together) {
  return chunks_of(inputs) * IntKernels::kChunk * planes * together;
}

/// Writes x as vector `index` of the group `out`, its bytes flipped, and returns its scale. A scale is NaN
/// where x has a NaN and infinite where it has an infinity, so that neither is lost.
float quantize(const float* x, int64_t inputs, int planes, int64_t step, int64_t together, int64_t index,
               uint8_t flip, int8_t* out);

/// The best kernels this machine can run.
const IntKernels& best_int_kernels();
/// Every set that this machine can run, the plain one first.
std::vector<const IntKernels*> all_int_kernels();

const IntKernels& plain_int_kernels();
#if defined(__aarch64__)
const IntKernels& dot_int_kernels();
const IntKernels& i8mm_int_kernels();
#elif defined(__x86_64__)
const IntKernels& avx2_int_kernels();
const IntKernels& avx_vnni_int_kernels();
const IntKernels& avx512_vnni_int_kernels();
#endif

}  // namespace sheaf

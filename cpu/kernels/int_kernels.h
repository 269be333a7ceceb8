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

/// How vectors of whole numbers lie in memory: in groups of `together`, chunk by chunk of inputs, so that an
/// instruction finds what it multiplies side by side: [chunks][planes][chunk / step][together][step].
struct IntLayout {
  int64_t chunk;  ///< inputs, 16 or 64; the last chunk is filled up with zeros
  int64_t step;   ///< what one instruction takes of a vector, 4 or 8
  int64_t together;
  uint8_t flip = 0;  ///< bits of every byte that are flipped: 0x80 makes -128 … 127 0 … 255

  constexpr IntLayout alone() const { return {chunk, step, 1, flip}; }
  constexpr int64_t chunks(int64_t inputs) const { return (inputs + chunk - 1) / chunk; }
  constexpr int64_t chunk_bytes(int planes) const { return chunk * planes * together; }
  /// Of a group.
  constexpr int64_t bytes(int64_t inputs, int planes) const { return chunks(inputs) * chunk_bytes(planes); }
};

/// Products of whole numbers. A vector of floats becomes whole numbers of one or two planes of 8 bits and one
/// scale: x ≈ scale · hi, or x ≈ scale · (256 · hi + lo). Sums of whole numbers are exact, so a product does
/// not depend on the order of its sums, and all kernels give the same bits.
struct IntKernels {
  const char* name;
  IntLayout rows;    ///< of a product
  IntLayout panels;  ///< weights, in groups of 16

  /// c[i][16p + j] = row_scales[i] · column_scales[16p + j] · Σₖ a[i][k] · b[p][k][j]. Two planes leave out
  /// lo · lo, which is smaller than what rounding to whole numbers loses.
  void (*multiply)(const IntFactors& factors, const float* row_scales, const float* column_scales,
                   float* const* c);

  /// Adds the sums themselves, of two planes: sums[i][32p + j] += Σₖ hi · hi and
  /// sums[i][32p + 16 + j] += Σₖ hi · lo + lo · hi.
  void (*add)(const IntFactors& factors, int32_t* const* sums);

  int64_t panels_at_once = 1;  ///< a call should have at least so many
};

/// Writes x as vector `index` of the group `out` and returns its scale. A scale is NaN where x has a NaN and
/// infinite where it has an infinity, so that neither is lost.
float quantize(const float* x, int64_t inputs, int planes, const IntLayout& layout, int64_t index,
               int8_t* out);

/// The best kernels this machine can run, and the best of those that take chunks of 16: keys and values lie
/// in pages of 16.
const IntKernels& best_int_kernels();
const IntKernels& best_paged_int_kernels();
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
const IntKernels& amx_int_kernels();
#endif

}  // namespace sheaf

#include <arm_neon.h>

#include "cpu/kernels/int_neon.h"
#include "cpu/kernels/int_quads.h"

/// SDOT: four columns over four inputs of one row, 32 operations, two a cycle on a Neoverse-N1. A tile of 5
/// rows × 16 columns (one plane) or 5 × 8 (two) holds its 20 sums in registers over the whole depth.
namespace sheaf {
namespace {

struct DotQuads {
  using Sum = int32x4_t;
  using Row = int8x16_t;
  static constexpr int kRows = 5;

  [[gnu::always_inline]] static Row row(const int8_t* from, int /*step*/) { return vld1q_s8(from); }
  [[gnu::always_inline]] static int8x16_t weights(const int8_t* from) { return vld1q_s8(from); }
  template <class Step>
  [[gnu::always_inline]] static void add(Sum& sum, Row row, int8x16_t weights, Step step) {
    sum = vdotq_laneq_s32(sum, weights, row, step);
  }
  [[gnu::always_inline]] static Sum finish(Sum sum) { return sum; }
};

}  // namespace

const IntKernels& dot_int_kernels() {
  static constexpr IntKernels kernels{"dot product",
                                      {kChunk, 4, 1},
                                      {kChunk, 4, kPanel},
                                      multiply<QuadTiles<DotQuads>>,
                                      add<QuadTiles<DotQuads>>};
  return kernels;
}

}  // namespace sheaf

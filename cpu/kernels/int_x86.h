#pragma once
#include <immintrin.h>

#include "cpu/kernels/int_tiles.h"

/// Sums in vectors of the width that the file is compiled for, and where they go.
namespace sheaf {
namespace {

#if defined(__AVX512F__)
using Native = __m512i;
#else
using Native = __m256i;
#endif

constexpr int kLanes = sizeof(Native) / 4;  // columns of a vector
using Ints __attribute__((vector_size(sizeof(Native)))) = int32_t;
using Floats __attribute__((vector_size(sizeof(Native)))) = float;
// Anywhere in memory.
using StoredInts __attribute__((vector_size(sizeof(Native)), aligned(1), may_alias)) = int32_t;
using StoredFloats __attribute__((vector_size(sizeof(Native)), aligned(1), may_alias)) = float;

template <int Planes>
[[gnu::always_inline]] inline void put(const Scaled& out, int64_t row, int64_t column, Ints high, Ints low) {
  Floats sum = __builtin_convertvector(high, Floats);
  if constexpr (Planes == 2) sum = sum * 256.0f + __builtin_convertvector(low, Floats);
  const float row_scale = out.row_scales[row] * (Planes == 2 ? 256.0f : 1.0f);
  const Floats scales = *reinterpret_cast<const StoredFloats*>(out.column_scales + column);
  *reinterpret_cast<StoredFloats*>(out.c[row] + column) = sum * (scales * row_scale);
}

template <int Planes>
[[gnu::always_inline]] inline void put(const Added& out, int64_t row, int64_t column, Ints high, Ints low) {
  *reinterpret_cast<StoredInts*>(out.sums[row] + Added::place(column, 0)) += high;
  *reinterpret_cast<StoredInts*>(out.sums[row] + Added::place(column, 1)) += low;
}

}  // namespace
}  // namespace sheaf

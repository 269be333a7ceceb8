#pragma once
#include <cstdint>
#include <initializer_list>

#include "core/base/thread_pool.h"
#include "core/model/model.h"
#include "cpu/kernels/kernels.h"
#include "cpu/large_buffer.h"
#include "cpu/stacked_rows.h"

namespace sheaf {

/// One or more weight matrices with the same inputs, stacked, as fp32 panels [outputs / 16][inputs][16].
struct PackedLinear {
  int64_t inputs = 0;
  int64_t outputs = 0;
  FloatBuffer panels;
};

PackedLinear pack(std::initializer_list<const Matrix*> matrices, RowOrder order, ThreadPool& pool);

/// y[row][n] = Σₖ x[row][k] · W[n][k]; y has room for outputs rounded up to kPanel in every row.
void apply(const PackedLinear& linear, const Kernels& kernels, ThreadPool& pool, const float* x,
           int64_t x_stride, int64_t rows, float* y, int64_t y_stride);

/// y[row][n] = silu(gate) · up, of a gate and an up matrix in turns; y likewise.
void apply_gated(const PackedLinear& linear, const Kernels& kernels, ThreadPool& pool, const float* x,
                 int64_t x_stride, int64_t rows, float* y, int64_t y_stride);

}  // namespace sheaf

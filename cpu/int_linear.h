#pragma once
#include <cstdint>
#include <initializer_list>

#include "core/base/thread_pool.h"
#include "core/model/model.h"
#include "cpu/kernels/int_kernels.h"
#include "cpu/kernels/kernels.h"
#include "cpu/large_buffer.h"
#include "cpu/stacked_rows.h"

namespace sheaf {

/// One or more weight matrices with the same inputs, stacked, as whole numbers with a scale for each output.
struct IntLinear {
  int64_t inputs = 0;
  int64_t outputs = 0;
  int planes = 1;
  LargeBuffer<int8_t> panels;  ///< groups of 16 outputs, as IntKernels takes them
  FloatBuffer scales;          ///< [outputs rounded up to 16]
};

IntLinear pack(std::initializer_list<const Matrix*> matrices, RowOrder order, int planes,
               const IntKernels& kernels, ThreadPool& pool);

/// The rows of a product as whole numbers, each with its own scale.
class IntRows {
 public:
  void reserve(const IntKernels& kernels, int64_t rows, int64_t inputs, int planes);
  /// May be called for different rows at once.
  void set(int64_t row, const float* x);

  const float* scales() const { return scales_.data(); }
  /// Row `row`, a multiple of the kernels' rows.together, and those after it.
  const int8_t* from(int64_t row) const {
    return data_.data() + row * layout_.alone().bytes(inputs_, planes_);
  }

 private:
  IntLayout layout_{};
  int64_t inputs_ = 0;
  int planes_ = 0;
  LargeBuffer<int8_t> data_;
  FloatBuffer scales_;
};

/// y[row][n] = Σₖ x[first + row][k] · W[n][k]; y has room for outputs rounded up to kPanel in every row.
void apply(const IntLinear& linear, const IntKernels& kernels, ThreadPool& pool, const IntRows& x,
           int64_t first, int64_t rows, float* y, int64_t y_stride);

/// y[row][n] = silu(gate) · up, of a gate and an up matrix in turns; y likewise.
void apply_gated(const IntLinear& linear, const IntKernels& kernels, const Kernels& float_kernels,
                 ThreadPool& pool, const IntRows& x, int64_t first, int64_t rows, float* y, int64_t y_stride);

}  // namespace sheaf

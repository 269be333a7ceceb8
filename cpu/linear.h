#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/model/model.h"
#include "cpu/kernels/int_kernels.h"
#include "cpu/kernels/kernels.h"
#include "cpu/large_buffer.h"

namespace sheaf {

/// How the rows of several matrices follow each other: one matrix below the other, or a panel of each in
/// turn, the last filled up with zeros.
enum class RowOrder : uint8_t { stacked, in_turns };

/// Weight matrices with the same inputs as one.
class StackedRows {
 public:
  StackedRows(std::initializer_list<const Matrix*> matrices, RowOrder order);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  int64_t panels() const { return round_up_to_panel(outputs_) / kPanel; }
  /// Calls use(panel, rows, filled) for every panel, whose rows are [kPanel, inputs]: the first `filled` ones
  /// are there, the others zeros.
  template <class Use>
  void each_panel(ThreadPool& pool, Use&& use) const {
    std::vector<std::vector<float>> rows(static_cast<size_t>(pool.size()));
    pool.run(panels(), [&](int64_t panel, int thread) {
      std::vector<float>& scratch = rows[static_cast<size_t>(thread)];
      scratch.resize(static_cast<size_t>(kPanel * inputs_));
      const int64_t filled = read_panel(panel, scratch.data());
      use(panel, scratch.data(), filled);
    });
  }

 private:
  int64_t read_panel(int64_t panel, float* out) const;

  RowOrder order_;
  std::vector<const Matrix*> matrices_;
  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
};

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

/// Biases of a gate and an up matrix, a panel of each in turn; empty where neither has one.
std::vector<float> biases_in_turns(const Matrix& gate, const Matrix& up);

/// What comes after the product of a gate and an up matrix in turns: activation(gate + bias) · (up + bias).
struct Gating {
  Kernels::Gated gated;
  const float* bias = nullptr;  ///< [outputs], in the order of the product's panels; null: none

  /// Rows of the panels of `pairs` pairs from `first` on, their biases not added yet.
  void run(float* both, int64_t first, int64_t pairs, int64_t rows, float* y, int64_t y_stride) const;
};

/// The product of a gate and an up matrix in turns, gated; y has room for outputs rounded up to kPanel.
void apply_gated(const PackedLinear& linear, const Kernels& kernels, const Gating& gating, ThreadPool& pool,
                 const float* x, int64_t x_stride, int64_t rows, float* y, int64_t y_stride);

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

/// The product of a gate and an up matrix in turns, gated; y has room for outputs rounded up to kPanel.
void apply_gated(const IntLinear& linear, const IntKernels& kernels, const Gating& gating, ThreadPool& pool,
                 const IntRows& x, int64_t first, int64_t rows, float* y, int64_t y_stride);

}  // namespace sheaf

#pragma once
#include <algorithm>
#include <initializer_list>

#include "core/backend/footprint.h"
#include "cpu/linear.h"

namespace sheaf {

/// Weights of a product in the type of their backend; the other is empty.
struct Linear {
  PackedLinear floats;
  IntLinear ints;
};

/// Rows [first, first + count) of a step, and the threads that work on them together. `first` is even, as
/// IntKernels' groups of rows want it.
struct RowShare {
  int64_t first;
  int64_t count;
  ThreadPool& threads;
};

/// How a backend multiplies: everything in fp32, or everything in whole numbers.
class Products {
 public:
  Products(Precision precision, const Kernels& kernels, ThreadPool& threads)
      : precision_(precision), kernels_(kernels), int_kernels_(best_int_kernels()), threads_(threads) {}

  Precision precision() const { return precision_; }
  bool whole_numbers() const { return in_whole_numbers(precision_); }
  int planes() const { return precision_ == Precision::int8 ? 1 : 2; }
  const IntKernels& int_kernels() const { return int_kernels_; }
  /// "fp32, NEON" or "int8, i8mm".
  std::string describe() const;

  /// Rows that products of whole numbers take as a group: those of another matrix begin at a multiple of it.
  int64_t rows_together() const { return whole_numbers() ? int_kernels_.rows.together : 1; }

  Linear pack(std::initializer_list<const Matrix*> matrices, RowOrder order = RowOrder::stacked) const;

  /// Calls body(share) until all rows are done. Few rows are one share, on which all threads work together.
  /// Of many, a thread takes a block and keeps what it computes in its own cache; nobody waits for anybody
  /// until the end. In fp32 every thread would read four times as many bytes of weights, which costs more
  /// than that.
  template <class Body>
  void each_share(int64_t rows, Body&& body) const {
    constexpr int64_t kFew = 24, kMost = 72;  // rows of a thread
    const int64_t threads = threads_.size();
    if (!whole_numbers() || rows < kFew * threads) return body(RowShare{0, rows, threads_});
    const int64_t blocks = (rows + kMost * threads - 1) / (kMost * threads) * threads;  // as many for each
    const int64_t block = (rows + 2 * blocks - 1) / (2 * blocks) * 2;
    threads_.run((rows + block - 1) / block, [&](int64_t task, int) {
      body(RowShare{task * block, std::min(block, rows - task * block), alone_});
    });
  }

  /// Calls body(group, threads) for groups of rows, each with matrices of its own, the largest first. Of many
  /// groups each is for one thread; on few, all threads work together.
  template <class Groups, class Body>
  void each_group(const Groups& groups, Body&& body) const {
    if (std::ssize(groups) < 2 * threads_.size()) {
      for (const auto& group : groups) body(group, threads_);
      return;
    }
    threads_.run(std::ssize(groups), [&](int64_t i, int) { body(groups[static_cast<size_t>(i)], alone_); });
  }

 private:
  friend class ProductRows;

  Precision precision_;
  const Kernels& kernels_;
  const IntKernels& int_kernels_;
  ThreadPool& threads_;
  mutable ThreadPool alone_{1};
};

/// The rows that go into products. Each is written as fp32 and then said to be ready.
class ProductRows {
 public:
  explicit ProductRows(const Products& products) : products_(products) {}

  /// Rows start `stride` floats apart; products take the first `inputs` of each.
  void reserve(int64_t rows, int64_t inputs, int64_t stride, const char* what);
  float* row(int64_t index) const { return floats_.data() + index * stride_; }
  float* data() const { return floats_.data(); }
  /// May be called for different rows at once.
  void ready(int64_t index) {
    if (products_.whole_numbers()) ints_.set(index, row(index));
  }

  /// y[row][n] = Σₖ x[row][k] · W[n][k] for the rows of a share; y has room for outputs rounded up to kPanel
  /// in every row.
  void multiply(const Linear& linear, const RowShare& share, float* y, int64_t y_stride) const;
  /// y[row][n] = activation(gate) · up, of a gate and an up matrix in turns; y has room for outputs
  /// rounded up to kPanel in every row.
  void multiply_gated(const Linear& linear, const Gating& gating, const RowShare& share, float* y,
                      int64_t y_stride) const;

 private:
  const Products& products_;
  int64_t stride_ = 0;
  FloatBuffer floats_;
  IntRows ints_;
};

}  // namespace sheaf

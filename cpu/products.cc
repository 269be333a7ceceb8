#include "cpu/products.h"

#include <fmt/format.h>

namespace sheaf {

std::string Products::describe() const {
  if (!whole_numbers()) return fmt::format("fp32, {}", kernels_.name);
  return fmt::format("{}, {}", planes() == 1 ? "int8" : "int16", int_kernels_.name);
}

Linear Products::pack(std::initializer_list<const Matrix*> matrices, RowOrder order) const {
  Linear linear;
  if (whole_numbers())
    linear.ints = sheaf::pack(matrices, order, planes(), int_kernels_, threads_);
  else
    linear.floats = sheaf::pack(matrices, order, threads_);
  return linear;
}

void ProductRows::reserve(int64_t rows, int64_t inputs, int64_t stride, const char* what) {
  stride_ = stride;
  floats_.reserve(rows * stride, what);
  if (products_.whole_numbers()) ints_.reserve(products_.int_kernels_, rows, inputs, products_.planes());
}

void ProductRows::multiply(const Linear& linear, const RowShare& share, float* y, int64_t y_stride) const {
  const auto [first, count, threads] = share;
  y += first * y_stride;
  if (products_.whole_numbers())
    apply(linear.ints, products_.int_kernels_, threads, ints_, first, count, y, y_stride);
  else
    apply(linear.floats, products_.kernels_, threads, row(first), stride_, count, y, y_stride);
}

void ProductRows::multiply_gated(const Linear& linear, const Gating& gating, const RowShare& share, float* y,
                                 int64_t y_stride) const {
  const auto [first, count, threads] = share;
  y += first * y_stride;
  if (products_.whole_numbers())
    apply_gated(linear.ints, products_.int_kernels_, gating, threads, ints_, first, count, y, y_stride);
  else
    apply_gated(linear.floats, products_.kernels_, gating, threads, row(first), stride_, count, y, y_stride);
}

}  // namespace sheaf

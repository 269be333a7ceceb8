#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "core/model/model.h"

namespace sheaf {

/// Weight matrices with the same inputs, one below the other.
class StackedRows {
 public:
  StackedRows(std::initializer_list<const Matrix*> matrices);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  /// Reads rows [first, first + count) as far as there are any, fills the rest with zeros, and returns how
  /// many there are.
  int64_t read(int64_t first, int64_t count, float* out) const;

 private:
  std::vector<const Matrix*> matrices_;
  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
};

}  // namespace sheaf

#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "core/model/model.h"
#include "core/model/panel.h"

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
  /// Reads the rows of a panel as far as there are any, fills the rest with zeros, and returns how many there
  /// are.
  int64_t read_panel(int64_t panel, float* out) const;

 private:
  RowOrder order_;
  std::vector<const Matrix*> matrices_;
  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
};

}  // namespace sheaf

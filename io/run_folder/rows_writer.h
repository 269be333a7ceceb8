#pragma once
#include <cstdint>

#include "core/task/row.h"

namespace sheaf {

/// Writes a rows file. One that is destroyed before it was closed writes nothing more.
class RowsWriter {
 public:
  virtual ~RowsWriter() = default;
  /// `bytes`: of the row as a line of JSON.
  virtual void add(const Row& row, int64_t bytes) = 0;
  virtual void close() = 0;
};

}  // namespace sheaf

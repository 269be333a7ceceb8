#pragma once
#include <cstdint>
#include <string>

#include "core/task/record.h"
#include "core/task/row.h"

namespace sheaf {

/// Where the rows and the rejects of a run go, in groups.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void row(const Row& row) = 0;
  virtual void reject(const Reject& reject) = 0;
  /// Ends a group: the corpus was read up to row `position`. `may_end`: a file may end with the group.
  virtual void commit(int64_t position, bool may_end) = 0;
  /// The corpus row that comes after the last committed group.
  virtual int64_t position() const = 0;
  virtual int64_t rows() const = 0;     ///< committed
  virtual int64_t rejects() const = 0;  ///< committed
  /// Keeps what the session counted, for the next one should this one be killed. Not part of a group.
  virtual void save_progress(const std::string& /*text*/) {}
  /// What an earlier session saved; empty: nothing.
  virtual std::string saved_progress() const { return {}; }
};

}  // namespace sheaf

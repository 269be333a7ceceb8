#pragma once
#include <map>

#include "core/model/work.h"
#include "core/segments/stack.h"

namespace sheaf {

/// Counts the work of stacks whose answers all reach their full length. Equal shared segments are counted
/// once, as an engine computes them that never has to give one up for want of pages.
class WorkCount {
 public:
  void add(const Stack& stack);
  const Work& work() const { return work_; }

 private:
  Work work_;
  std::map<std::vector<int64_t>, int64_t> shared_;  ///< what tells a segment from others → its serial
  int64_t next_serial_ = 0;
};

}  // namespace sheaf

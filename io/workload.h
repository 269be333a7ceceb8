#pragma once
#include <string>
#include <vector>

#include "core/methods/parts.h"

namespace sheaf {

/// A token-level workload for benchmarks: the first line of the file holds the instruction's ids, every other
/// one a context with its questions (ids and a fixed number of answer tokens), which may carry `slots` (key
/// ids and value tokens).
struct Workload {
  std::string name;
  std::vector<std::vector<ItemParts>> bins;  ///< items that may share a prompt
  int64_t questions = 0;                     ///< questions or products
  int32_t vocab = 0;                         ///< one more than the largest id
};

/// Reads a workload. `slots`: every question is a document whose slots are decoded (its context joins the
/// instruction).
Workload read_workload(const std::string& path, bool slots);

}  // namespace sheaf

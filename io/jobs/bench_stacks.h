#pragma once
#include <string>
#include <vector>

#include "core/segments/stack.h"
#include "io/files/workload.h"

namespace sheaf {

/// How a workload is packed.
struct BenchPacking {
  std::string method = "ippd";
  int32_t documents = 0;          ///< contexts or documents per prompt; 0: as many as fit
  int32_t prompt_tokens = 32768;  ///< most tokens of a prompt
  int32_t window = 512;           ///< records planned together
};

/// The workload's prompts, by the planner of a run; refuses one that needs more than `context` positions.
std::vector<Stack> pack(const Workload& workload, const BenchPacking& packing, int32_t context);

/// Pages that all of them would take together, nothing shared.
int64_t most_pages(const std::vector<Stack>& stacks, int32_t page_size);

}  // namespace sheaf

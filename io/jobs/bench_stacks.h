#pragma once
#include <string>
#include <vector>

#include "core/job/job.h"
#include "core/segments/stack.h"
#include "io/files/workload.h"

namespace sheaf {

/// How a workload is packed.
struct BenchPacking {
  Job::Method method{.name = "ippd", .documents = 0, .prompt_tokens = 32768};
  int32_t window = Job::Engine().window;  ///< records planned together
};

/// The workload's prompts, by the planner of a run; refuses one that needs more than `context` positions.
std::vector<Stack> pack(const Workload& workload, const BenchPacking& packing, int32_t context);

/// Whether the method asks for all values of a document as one text.
bool asks_for_objects(const Job::Method& method);

/// Pages that all of them would take together, nothing shared.
int64_t most_pages(const std::vector<Stack>& stacks, int32_t page_size);

}  // namespace sheaf

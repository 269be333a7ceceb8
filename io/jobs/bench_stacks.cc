#include "io/jobs/bench_stacks.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/plan/planner.h"

namespace sheaf {

bool asks_for_objects(const Job::Method& method) {
  return find_method(method.name).wording.answers == AnswerForm::object;
}

std::vector<Stack> pack(const Workload& workload, const BenchPacking& packing, int32_t context) {
  Planner planner(make_builder(packing.method),
                  {context, packing.method.prompt_tokens, [](const Stack&) { return true; }});
  std::vector<ReadyRecord> rows = workload_rows(workload);
  if (find_method(packing.method.name).wording.answers == AnswerForm::list)
    for (ReadyRecord& row : rows) row.parts = ask_together(std::move(row.parts));
  std::vector<Stack> stacks;
  for (std::span<const ReadyRecord> rest = rows; !rest.empty();) {
    const auto window = rest.first(std::min(rest.size(), static_cast<size_t>(packing.window)));
    Plan plan = planner.plan({window.begin(), window.end()});
    if (!plan.refused.empty()) refuse("{}: a line cannot be used: {}", workload.name, plan.refused[0].second);
    std::ranges::move(plan.stacks, std::back_inserter(stacks));
    rest = rest.subspan(window.size());
  }
  return stacks;
}

int64_t most_pages(const std::vector<Stack>& stacks, int32_t page_size) {
  int64_t pages = 0;
  for (const Stack& stack : stacks)
    for (const int32_t keys : stack.most_keys()) pages += pages_for(keys, page_size);
  return pages;
}

}  // namespace sheaf

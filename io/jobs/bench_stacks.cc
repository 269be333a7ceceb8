#include "io/jobs/bench_stacks.h"

#include "core/base/error.h"
#include "core/methods/builder.h"

namespace sheaf {
namespace {

int64_t tokens_of(const ItemParts& item) {
  auto tokens = static_cast<int64_t>(item.document.size());
  for (const QuestionParts& question : item.questions())
    tokens += static_cast<int64_t>(question.tokens.size()) + question.max_tokens;
  return tokens;
}

/// How many of the items go into the next prompt: at least one.
size_t next_group(std::span<const ItemParts> items, int32_t documents, int64_t prompt_tokens) {
  size_t count = 0;
  int64_t tokens = 0;
  while (count < items.size() && (documents == 0 || count < static_cast<size_t>(documents))) {
    tokens += tokens_of(items[count]);
    if (count > 0 && tokens > prompt_tokens) break;
    ++count;
  }
  return count;
}

}  // namespace

std::vector<Stack> pack(const Workload& workload, const BenchPacking& packing, int32_t context) {
  Job::Method method;
  method.name = packing.method;
  method.documents = packing.documents;
  const Builder builder = make_builder(method);
  std::vector<Stack> stacks;
  for (const auto& bin : workload.bins) {
    std::span<const ItemParts> rest(bin);
    while (!rest.empty()) {
      const size_t count = next_group(rest, builder.documents, packing.prompt_tokens);
      builder.build(rest.first(count), stacks);
      rest = rest.subspan(count);
    }
  }
  for (const Stack& stack : stacks)
    if (stack.positions() > context)
      refuse("{}: a prompt needs {} positions and the model has {}", workload.name, stack.positions(),
             context);
  return stacks;
}

int64_t most_pages(const std::vector<Stack>& stacks, int32_t page_size) {
  int64_t pages = 0;
  for (const Stack& stack : stacks)
    for (const int32_t keys : stack.most_keys()) pages += (keys + page_size - 1) / page_size;
  return pages;
}

}  // namespace sheaf

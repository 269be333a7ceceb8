#include "core/plan/planner.h"

#include <algorithm>
#include <unordered_map>

#include "core/engine/random_stream.h"
#include "core/error.h"

namespace sheaf {
namespace {

/// Prompt and answer tokens an item adds to a stack; a document that stands there already costs nothing.
int64_t token_cost(const ItemParts& item, bool known_document) {
  int64_t cost = known_document ? 0 : static_cast<int64_t>(item.document.size() + item.bin->opening.size());
  for (const QuestionParts& question : item.questions())
    cost += static_cast<int64_t>(question.tokens.size()) + question.max_tokens;
  return cost;
}

/// Positions of the longest prompt that asks one of the item's questions alone.
int64_t least_positions(const ItemParts& item) {
  int64_t longest = 0;
  for (const QuestionParts& question : item.questions())
    longest = std::max(longest, static_cast<int64_t>(question.tokens.size()) + question.max_tokens - 1);
  return static_cast<int64_t>(item.bin->instruction.size() + item.document.size() +
                              item.bin->opening.size()) +
         longest;
}

/// Puts items with equal documents next to each other, otherwise in input order.
void gather_equal_documents(std::vector<ItemParts>& items) {
  auto less = [](const Tokens* a, const Tokens* b) { return *a < *b; };
  std::map<const Tokens*, size_t, decltype(less)> first(less);
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t i = 0; i < items.size(); ++i)
    order.emplace_back(first.try_emplace(&items[i].document, i).first->second, i);
  std::stable_sort(order.begin(), order.end());
  std::vector<ItemParts> sorted;
  sorted.reserve(items.size());
  for (const auto& [_, i] : order) sorted.push_back(std::move(items[i]));
  items = std::move(sorted);
}

}  // namespace

Plan Planner::plan(std::span<const Item> items) {
  Plan plan;
  plan.slots_of_item.assign(items.size(), 0);
  std::vector<std::string> order;
  std::unordered_map<std::string, std::vector<ItemParts>> bins;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    try {
      ItemParts parts = task_.parts(items[i]);
      parts.item = index;
      parts.stream = hash_text(items[i].id.dump());
      plan.slots_of_item[i] = static_cast<int32_t>(parts.questions().size());
      if (parts.questions().empty()) continue;
      const std::string name = task_.bin_name(items[i]);
      auto& bin = bins[name];
      if (bin.empty()) order.push_back(name);
      bin.push_back(std::move(parts));
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      plan.refused.emplace_back(index, error.what());
    }
  }
  for (const std::string& name : order) stack_bin(name, std::move(bins[name]), plan);
  return plan;
}

void Planner::stack_bin(const std::string& name, std::vector<ItemParts> items, Plan& plan) {
  gather_equal_documents(items);
  BinCount& count = bins_[name];
  count.items += static_cast<int64_t>(items.size());
  const int64_t head = static_cast<int64_t>(items.front().bin->instruction.size());
  size_t start = 0;
  while (start < items.size()) {
    size_t end = start + 1;
    int32_t documents = 1;
    int64_t cost = head + token_cost(items[start], false);
    for (; end < items.size(); ++end) {
      const bool known = items[end].document == items[end - 1].document;
      if (!known && ++documents > builder_.documents && builder_.documents != 0) break;
      cost += token_cost(items[end], known);
      if (cost > limits_.prompt_tokens) break;
    }
    stack_group(std::span(items).subspan(start, end - start), plan, count);
    start = end;
  }
}

void Planner::stack_group(std::span<const ItemParts> group, Plan& plan, BinCount& count) {
  const size_t before = plan.stacks.size();
  // A row that no prompt can hold is found before its prompts are built, however many questions it has.
  std::string reason = group.size() == 1 ? too_long(least_positions(group[0])) : "";
  if (reason.empty()) builder_.build(group, plan.stacks);
  for (size_t i = before; i < plan.stacks.size() && reason.empty(); ++i) reason = unfit(plan.stacks[i]);
  if (reason.empty()) {
    count.stacks += static_cast<int64_t>(plan.stacks.size() - before);
    return;
  }
  plan.stacks.resize(before);
  if (group.size() == 1) {
    plan.refused.emplace_back(group[0].item, reason);
    plan.slots_of_item[static_cast<size_t>(group[0].item)] = 0;
    return;
  }
  stack_group(group.first(group.size() / 2), plan, count);
  stack_group(group.subspan(group.size() / 2), plan, count);
}

std::string Planner::too_long(int64_t positions) const {
  if (positions <= limits_.context) return {};
  return fmt::format(
      "its prompt needs {} positions and the model has {}; shorten the document or ask for less", positions,
      limits_.context);
}

std::string Planner::unfit(const Stack& stack) const {
  if (std::string reason = too_long(stack.positions()); !reason.empty()) return reason;
  if (!limits_.fits(stack))
    return fmt::format("its prompt of {} tokens does not fit the key/value memory; raise engine.kv_memory_gb",
                       stack.prompt_tokens());
  return {};
}

}  // namespace sheaf

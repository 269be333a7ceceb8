#include "core/plan/planner.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/random_stream.h"

namespace sheaf {
namespace {

constexpr size_t kShortestPart = 16;  // tokens; shorter parts of a document tell nothing

/// Prompt and answer tokens an item adds to a stack; a document that stands there already costs nothing.
int64_t token_cost(const ItemParts& item, bool known_document) {
  int64_t cost = known_document && item.experts.empty()
                     ? 0
                     : static_cast<int64_t>(item.document_tokens() + item.bin->opening.size());
  for (const QuestionParts& question : item.questions())
    cost += static_cast<int64_t>(question.tokens.size()) + question.max_tokens;
  return cost;
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

int64_t least_positions(const ItemParts& item) {
  int64_t longest = 0;
  for (const QuestionParts& question : item.questions())
    longest = std::max(longest, static_cast<int64_t>(question.tokens.size()) + question.max_tokens - 1);
  size_t document = item.document.size();
  for (const DocumentParts& expert : item.experts) document = std::max(document, expert.tokens.size());
  return static_cast<int64_t>(item.bin->instruction.size() + document + item.bin->opening.size()) + longest;
}

std::vector<ReadyItem> make_ready(Task& task, std::span<const Item> items) {
  std::vector<ReadyItem> ready;
  ready.reserve(items.size());
  for (const Item& item : items) {
    ReadyItem& made = ready.emplace_back();
    try {
      made.parts = task.parts(item);
      made.parts.stream = hash_text(item.id.dump());
      made.bin = task.bin_name(item);
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      made.refused = error.what();
    }
  }
  return ready;
}

Plan Planner::plan(std::vector<ReadyItem> items) {
  Plan plan;
  plan.items.resize(items.size());
  std::vector<std::string> order;
  std::unordered_map<std::string, std::vector<ItemParts>> bins;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    if (!items[i].refused.empty()) {
      plan.refused.emplace_back(index, std::move(items[i].refused));
      continue;
    }
    ItemParts& parts = items[i].parts;
    parts.item = index;
    plan.items[i].slots = static_cast<int32_t>(parts.questions().size());
    plan.items[i].document_tokens = static_cast<int32_t>(parts.document_tokens());
    if (parts.questions().empty()) continue;
    auto& bin = bins[items[i].bin];
    if (bin.empty()) order.push_back(items[i].bin);
    bin.push_back(std::move(parts));
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
  const std::string reason = try_build(group, plan.stacks);
  count.stacks += static_cast<int64_t>(plan.stacks.size() - before);
  if (reason.empty()) return;
  if (group.size() == 1) return stack_long(group[0], reason, plan, count);
  stack_group(group.first(group.size() / 2), plan, count);
  stack_group(group.subspan(group.size() / 2), plan, count);
}

std::string Planner::try_build(std::span<const ItemParts> group, std::vector<Stack>& stacks) const {
  // A row that no prompt can hold is found before its prompts are built, however many questions it has.
  std::string reason;
  if (group.size() == 1)
    reason = too_long(builder_.chains ? static_cast<int64_t>(group[0].bin->instruction.size()) +
                                            token_cost(group[0], false) - 1
                                      : least_positions(group[0]));
  if (!reason.empty()) return reason;
  const size_t before = stacks.size();
  builder_.build(group, stacks);
  for (size_t i = before; i < stacks.size() && reason.empty(); ++i) reason = unfit(stacks[i]);
  if (!reason.empty()) stacks.resize(before);
  return reason;
}

/// An item that no prompt holds whole.
void Planner::stack_long(const ItemParts& item, const std::string& reason, Plan& plan, BinCount& count) {
  PlannedItem& planned = plan.items[static_cast<size_t>(item.item)];
  ItemParts part = item;
  const auto cut = [&](size_t begin, size_t tokens) {
    const auto from = item.document.begin() + static_cast<ptrdiff_t>(begin);
    part.document.assign(from, from + static_cast<ptrdiff_t>(std::min(tokens, item.document.size() - begin)));
  };
  std::vector<Stack> stacks;
  size_t fitting = 0, unfitting = item.document.size();  // tokens of a part
  while (limits_.too_long != TooLong::refuse && unfitting - fitting > 1) {
    const size_t middle = fitting + (unfitting - fitting) / 2;
    cut(0, middle);
    stacks.clear();
    (try_build({&part, 1}, stacks).empty() ? fitting : unfitting) = middle;
  }
  if (fitting < kShortestPart) {
    plan.refused.emplace_back(item.item, reason);
    planned.slots = 0;
    return;
  }
  const size_t before = plan.stacks.size();
  const auto questions = static_cast<int32_t>(item.questions().size());
  // Parts overlap, so that what stands at the end of one is whole in the next.
  const size_t stride = fitting - fitting / 8;
  int32_t number = 0;
  for (size_t begin = 0;; begin += stride, ++number) {
    cut(begin, fitting);
    const size_t first = plan.stacks.size();
    part.stream = number == 0 ? item.stream : mix(item.stream, static_cast<uint64_t>(number));
    if (const std::string unexpected = try_build({&part, 1}, plan.stacks); !unexpected.empty())
      fail("part {} of a document does not fit: {}", number + 1, unexpected);
    for (size_t i = first; i < plan.stacks.size(); ++i)
      for (Slot& slot : plan.stacks[i].slots) slot.question += number * questions;
    if (limits_.too_long == TooLong::truncate || begin + fitting >= item.document.size()) break;
  }
  planned.parts = number + 1;
  planned.slots = planned.parts * questions;
  if (limits_.too_long == TooLong::truncate)
    planned.cut_tokens = static_cast<int32_t>(item.document.size() - fitting);
  count.stacks += static_cast<int64_t>(plan.stacks.size() - before);
}

std::string Planner::too_long(int64_t positions) const {
  if (positions <= limits_.context) return {};
  return fmt::format("its prompt needs {} positions, but the model has {}; {}", positions, limits_.context,
                     builder_.experts ? "shorten its longest document, or use a model with a longer context"
                                      : "shorten the document, ask fewer questions, or set input.too_long");
}

std::string Planner::unfit(const Stack& stack) const {
  if (std::string reason = too_long(stack.positions()); !reason.empty()) return reason;
  if (!limits_.fits(stack))
    return fmt::format("its prompt of {} tokens does not fit the key/value memory; raise engine.kv_memory_gb",
                       stack.prompt_tokens());
  return {};
}

}  // namespace sheaf

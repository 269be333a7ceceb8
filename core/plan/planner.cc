#include "core/plan/planner.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/random_stream.h"

namespace sheaf {
namespace {

constexpr size_t kShortestPart = 16;  // tokens; shorter parts of a document tell nothing

/// Prompt and answer tokens a record adds to a stack; a document that stands there already costs nothing.
int64_t token_cost(const RecordParts& record, bool known_document) {
  int64_t cost = known_document && record.documents.empty()
                     ? 0
                     : static_cast<int64_t>(record.document_tokens() + record.bin->opening.size());
  for (const size_t q : record.asked()) {
    const QuestionParts& question = record.questions()[q];
    cost += std::ssize(question.tokens) + question.most_tokens();
  }
  return cost;
}

/// Tokens of the longest of some questions and its answer, those about the entries of lists included.
int64_t longest(const std::vector<QuestionParts>& questions) {
  int64_t tokens = 0;
  for (const QuestionParts& question : questions) {
    tokens = std::max(tokens, std::ssize(question.tokens) + question.max_tokens - 1);
    if (const EntryParts* entries = question.entries.get())
      tokens = std::max(tokens, static_cast<int64_t>(entries->most_tokens) + longest(entries->questions));
  }
  return tokens;
}

/// Puts records with equal documents next to each other, otherwise in input order.
void gather_equal_documents(std::vector<RecordParts>& records) {
  auto less = [](const RecordParts* a, const RecordParts* b) {
    return std::tie(a->document, a->head) < std::tie(b->document, b->head);
  };
  std::map<const RecordParts*, size_t, decltype(less)> first(less);
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t i = 0; i < records.size(); ++i)
    order.emplace_back(first.try_emplace(&records[i], i).first->second, i);
  std::stable_sort(order.begin(), order.end());
  std::vector<RecordParts> sorted;
  sorted.reserve(records.size());
  for (const auto& [_, i] : order) sorted.push_back(std::move(records[i]));
  records = std::move(sorted);
}

}  // namespace

int64_t least_positions(const RecordParts& record) {
  size_t document = record.head.size() + record.document.size(), chain = 0;
  for (const DocumentParts& each : record.documents) chain = std::max(chain, each.tokens.size());
  int64_t first_round = 0;
  if (const FindingParts* findings = record.findings.get()) {
    first_round = static_cast<int64_t>(findings->instruction.size() + chain) + longest(findings->asked);
    document = findings->most_tokens(record.documents.size());
  } else {
    document = std::max(document, chain);
  }
  const size_t before = record.bin->instruction.size() + document + record.bin->opening.size();
  return std::max(first_round, static_cast<int64_t>(before) + longest(record.questions()));
}

std::vector<ReadyRecord> make_ready(Task& task, std::span<const Record> records) {
  std::vector<ReadyRecord> ready;
  ready.reserve(records.size());
  for (const Record& record : records) {
    ReadyRecord& made = ready.emplace_back();
    try {
      made.parts = task.parts(record);
      made.parts.stream = hash_text(record.id.dump());
      made.bin = task.bin_name(record);
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      made.refused = error.what();
    }
  }
  return ready;
}

Plan Planner::plan(std::vector<ReadyRecord> records) {
  Plan plan;
  plan.records.resize(records.size());
  std::vector<std::string> order;
  std::unordered_map<std::string, std::vector<RecordParts>> bins;
  for (size_t i = 0; i < records.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    if (!records[i].refused.empty()) {
      plan.refused.emplace_back(index, std::move(records[i].refused));
      continue;
    }
    RecordParts& parts = records[i].parts;
    parts.record = index;
    if (prompts) prompts->add(parts);
    auto& [outcome, asked] = plan.records[i];
    outcome.answers.resize(parts.questions().size());
    outcome.document_tokens = static_cast<int32_t>(parts.document_tokens());
    size_t prompt = parts.bin->instruction.size() + parts.document_tokens() + parts.bin->opening.size();
    for (size_t q = 0; q < parts.questions().size(); ++q) {
      asked += parts.asks(q) ? 1 : 0;
      if (parts.sample_of(q) == 0) prompt += parts.questions()[q].tokens.size();
    }
    outcome.prompt_tokens = static_cast<int32_t>(prompt);
    if (asked == 0) continue;
    auto& bin = bins[records[i].bin];
    if (bin.empty()) order.push_back(records[i].bin);
    bin.push_back(std::move(parts));
  }
  for (const std::string& name : order) stack_bin(name, std::move(bins[name]), plan);
  // Answers that are made late are made here, where the prompts are known, and not while the engine decodes.
  for (const Stack& stack : plan.stacks)
    for (const Slot& slot : stack.slots)
      if (slot.allowed) slot.allowed->allowed(AllowedAnswers::root);
  return plan;
}

void Planner::stack_bin(const std::string& name, std::vector<RecordParts> records, Plan& plan) {
  gather_equal_documents(records);
  BinCount& count = bins_[name];
  count.records += static_cast<int64_t>(records.size());
  const int64_t head = static_cast<int64_t>(records.front().bin->instruction.size());
  count.head_tokens = head;
  size_t start = 0;
  while (start < records.size()) {
    size_t end = start + 1;
    int32_t documents = 1;
    int64_t cost = head + token_cost(records[start], false);
    for (; end < records.size(); ++end) {
      const bool known = has_same_document(records[end], records[end - 1]);
      if (!known && ++documents > builder_.documents && builder_.documents != 0) break;
      cost += token_cost(records[end], known);
      if (cost > limits_.prompt_tokens) break;
    }
    stack_group(std::span(records).subspan(start, end - start), plan, count);
    start = end;
  }
}

void Planner::stack_group(std::span<const RecordParts> group, Plan& plan, BinCount& count) {
  const size_t before = plan.stacks.size();
  const std::string reason = try_build(group, plan.stacks);
  count.stacks += static_cast<int64_t>(plan.stacks.size() - before);
  if (reason.empty()) return;
  if (group.size() == 1) return stack_long(group[0], reason, plan, count);
  stack_group(group.first(group.size() / 2), plan, count);
  stack_group(group.subspan(group.size() / 2), plan, count);
}

std::string Planner::try_build(std::span<const RecordParts> group, std::vector<Stack>& stacks) const {
  // A row that no prompt can hold is found before its prompts are built, however many questions it has.
  std::string reason;
  const std::string& own_advice = group[0].bin->advice;
  const std::string_view advice = own_advice.empty() ? builder_.advice : own_advice;
  if (group.size() == 1)
    reason = too_long(builder_.in_a_row ? static_cast<int64_t>(group[0].bin->instruction.size()) +
                                              token_cost(group[0], false) - 1
                                        : least_positions(group[0]),
                      advice);
  if (!reason.empty()) return reason;
  const size_t before = stacks.size();
  builder_.build(group, stacks);
  for (size_t i = before; i < stacks.size() && reason.empty(); ++i) {
    think_first(stacks[i]);
    ask_entries(stacks[i], group, builder_.in_a_row);
    reason = unfit(stacks[i], advice);
  }
  if (!reason.empty()) stacks.resize(before);
  return reason;
}

/// A record that no prompt holds whole.
void Planner::stack_long(const RecordParts& record, const std::string& reason, Plan& plan, BinCount& count) {
  PlannedRecord& planned = plan.records[record.record];
  RecordParts part = record;
  part.known.clear();  // answers to a whole document are not those to its parts
  const auto cut = [&](size_t begin, size_t tokens) {
    const auto from = record.document.begin() + static_cast<ptrdiff_t>(begin);
    tokens = std::min(tokens, record.document.size() - begin);
    part.document.assign(from, from + static_cast<ptrdiff_t>(tokens));
    if (begin + tokens < record.document.size()) append(part.document, record.bin->closing);
  };
  std::vector<Stack> stacks;
  size_t fitting = 0, unfitting = record.document.size();  // tokens of a part
  while (limits_.too_long != TooLong::refuse && unfitting - fitting > 1) {
    const size_t middle = fitting + (unfitting - fitting) / 2;
    cut(0, middle);
    stacks.clear();
    (try_build({&part, 1}, stacks).empty() ? fitting : unfitting) = middle;
  }
  if (fitting < kShortestPart) {
    plan.refused.emplace_back(record.record, reason);
    planned = {};
    --count.records;
    return;
  }
  const size_t before = plan.stacks.size();
  const auto questions = static_cast<int32_t>(record.questions().size());
  // Parts overlap, so that what stands at the end of one is whole in the next.
  const size_t stride = fitting - fitting / 8;
  int32_t number = 0;
  for (size_t begin = 0;; begin += stride, ++number) {
    cut(begin, fitting);
    if (record.part_copies)
      part.copies =
          record.part_copies(record.document, begin, std::min(begin + fitting, record.document.size()));
    const size_t first = plan.stacks.size();
    part.stream = number == 0 ? record.stream : mix(record.stream, static_cast<uint64_t>(number));
    if (const std::string unexpected = try_build({&part, 1}, plan.stacks); !unexpected.empty())
      fail("part {} of a document does not fit: {}", number + 1, unexpected);
    for (size_t i = first; i < plan.stacks.size(); ++i)
      for (Slot& slot : plan.stacks[i].slots) slot.question += number * questions;
    if (limits_.too_long == TooLong::truncate || begin + fitting >= record.document.size()) break;
  }
  planned.outcome.parts = number + 1;
  planned.asked = planned.outcome.parts * questions;
  planned.outcome.answers.resize(static_cast<size_t>(planned.asked));
  if (limits_.too_long == TooLong::truncate)
    planned.outcome.cut_tokens = static_cast<int32_t>(record.document.size() - fitting);
  count.stacks += static_cast<int64_t>(plan.stacks.size() - before);
}

std::string Planner::too_long(int64_t positions, std::string_view advice) const {
  if (positions <= limits_.context) return {};
  if (positions <= limits_.long_context)
    return fmt::format(
        "its prompt needs {} positions, but the model has {} unless model.context asks for more", positions,
        limits_.context);
  return fmt::format("its prompt needs {} positions, but the model has {}; {}", positions, limits_.context,
                     advice);
}

std::string Planner::unfit(const Stack& stack, std::string_view advice) const {
  if (std::string reason = too_long(stack.positions(), advice); !reason.empty()) return reason;
  if (!limits_.fits(stack))
    return fmt::format("its prompt of {} tokens does not fit the key/value memory; raise engine.kv_memory_gb",
                       stack.prompt_tokens());
  return stack.next ? unfit(stack.next->longest(), advice) : std::string();
}

}  // namespace sheaf

#include "core/plan/training_prompt.h"

#include <algorithm>

#include "core/base/error.h"

namespace sheaf {
namespace {

/// Segments that have targets, and those that they see.
std::vector<bool> find_needed(const Stack& stack, const std::vector<std::vector<int32_t>>& targets) {
  std::vector<bool> needed(stack.segments.size());
  for (size_t i = needed.size(); i-- > 0;) {
    needed[i] = needed[i] || std::ranges::any_of(targets[i], [](int32_t target) { return target >= 0; });
    if (!needed[i]) continue;
    for (const Sight& sight : stack.segments[i].sees) needed[sight.segment] = true;
  }
  return needed;
}

/// The answer up to the token with which decoding would end it.
Tokens cut_answer(const Slot& slot, const Tokens& wanted, const StopRules& rules) {
  Tokens answer;
  const bool listed = slot.allowed && slot.allowed->list();
  for (const TokenId token : wanted) {
    answer.push_back(token);
    if (std::ssize(answer) == slot.max_tokens) break;
    if (!listed && (rules.ends_text(token) || rules.ends_answer(slot, answer))) break;
  }
  return answer;
}

/// What is wanted of a slot of a later round, by what is `known` of the slots of the round before.
const WantedAnswer* inner_answer(const std::vector<const WantedAnswer*>& known, const Slot& slot) {
  const WantedAnswer* list = known[static_cast<size_t>(slot.parent)];
  const auto entry = static_cast<size_t>(slot.entry), field = static_cast<size_t>(slot.question);
  const bool there = list && entry < list->entries.size() && field < list->entries[entry].size();
  return there ? &list->entries[entry][field] : nullptr;
}

}  // namespace

std::optional<TrainingPrompt> make_training_prompt(
    const Stack& stack, const StopRules& rules,
    const std::function<std::optional<Tokens>(const Slot&)>& wanted) {
  std::vector<Segment> segments = stack.segments;
  std::vector<std::vector<int32_t>> targets;
  targets.reserve(segments.size());
  for (const Segment& segment : segments) targets.emplace_back(segment.tokens.size(), -1);
  TrainingPrompt prompt;
  for (const Slot& slot : stack.slots) {
    if (slot.prompts() > 1) fail("a training prompt has an answer with chains");
    const std::optional<Tokens> whole = wanted(slot);
    if (!whole || whole->empty()) continue;
    const Tokens answer = cut_answer(slot, *whole, rules);
    targets[slot.prompt].back() = answer.front();
    const auto own = static_cast<size_t>(slot.answer);
    append(segments[own].tokens, {answer.begin(), answer.end() - 1});
    targets[own].insert(targets[own].end(), answer.begin() + 1, answer.end());
    ++prompt.answers;
    if (std::ranges::find(prompt.records, slot.record) == prompt.records.end())
      prompt.records.push_back(slot.record);
  }
  if (prompt.answers == 0) return std::nullopt;

  const std::vector<bool> needed = find_needed(stack, targets);
  std::vector<int32_t> number(segments.size(), -1);
  for (size_t i = 0; i < segments.size(); ++i) {
    if (!needed[i]) continue;
    number[i] = static_cast<int32_t>(prompt.segment_starts.size());
    prompt.segment_starts.push_back(static_cast<int32_t>(prompt.tokens.size()));
    for (size_t t = 0; t < segments[i].tokens.size(); ++t)
      prompt.positions.push_back(segments[i].first_position + static_cast<int32_t>(t));
    append(prompt.tokens, segments[i].tokens);
    prompt.targets.insert(prompt.targets.end(), targets[i].begin(), targets[i].end());
    auto& sees = prompt.sees.emplace_back();
    auto& abreast = prompt.abreast.emplace_back();
    for (const Sight& sight : segments[i].sees)
      (sight.abreast ? abreast : sees).push_back(number[sight.segment]);
  }
  return prompt;
}

std::vector<TrainingPrompt> make_training_prompts(
    const Stack& stack, const StopRules& rules,
    const std::function<const WantedAnswer*(const Slot&)>& wanted) {
  std::vector<TrainingPrompt> prompts;
  std::vector<const WantedAnswer*> known;
  for (const Slot& slot : stack.slots) known.push_back(wanted(slot));
  std::optional<Stack> later;
  for (const Stack* round = &stack; round != nullptr;) {
    const auto tokens_of = [&](const Slot& slot) {
      const WantedAnswer* answer = known[static_cast<size_t>(&slot - round->slots.data())];
      return answer ? answer->tokens : std::nullopt;
    };
    if (auto prompt = make_training_prompt(*round, rules, tokens_of)) prompts.push_back(std::move(*prompt));
    if (!round->next || round->feeds_next()) break;
    std::vector<Tokens> answers;
    for (const Slot& slot : round->slots) {
      const std::optional<Tokens> tokens = tokens_of(slot);
      answers.push_back(tokens ? cut_answer(slot, *tokens, rules) : Tokens());
    }
    Stack made = round->next->after(answers, std::vector<double>(answers.size()));
    std::vector<const WantedAnswer*> inner;
    for (const Slot& slot : made.slots) inner.push_back(inner_answer(known, slot));
    known = std::move(inner);
    later = std::move(made);
    round = later->slots.empty() ? nullptr : &*later;
  }
  return prompts;
}

}  // namespace sheaf

#include <fmt/ranges.h>
#include <map>
#include <set>

#include "core/segments/stack.h"

namespace sheaf {
namespace {

constexpr size_t kShownOptions = 8;

std::string answer_mark(const Slot& slot,
                        const std::function<std::string(std::span<const TokenId>)>& text_of) {
  const AnswerTrie* list = slot.allowed ? slot.allowed->list() : nullptr;
  if (!list) return fmt::format("[answer: at most {} tokens]", slot.max_tokens);
  std::vector<std::string> options;
  for (const Tokens& answer : list->answers()) {
    if (options.size() == kShownOptions) break;
    std::string text = text_of(answer);
    options.push_back(text.starts_with(' ') ? text.substr(1) : text);
  }
  if (list->answers().size() == 1) return fmt::format("[option: {}]", options[0]);
  const size_t more = list->answers().size() - options.size();
  return fmt::format("[answer: one of {}{}]", fmt::join(options, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string indented(const std::string& text) {
  std::string out = "    ";
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out + "\n";
}

}  // namespace

std::string stack_text(const Stack& stack,
                       const std::function<std::string(std::span<const TokenId>)>& text_of,
                       const std::function<std::string(int32_t record)>& record_name) {
  std::map<SegmentId, std::set<int32_t>> records;  // whose answers come from a segment or see it
  std::map<SegmentId, std::string> marks;
  for (const Slot& slot : stack.slots) {
    marks[slot.answer] += answer_mark(slot, text_of);
    for (int32_t i = 0; i < slot.prompts(); ++i) {
      records[slot.prompt + i].insert(slot.record);
      for (const Sight& sight : stack.segments[slot.prompt + i].sees)
        records[sight.segment].insert(slot.record);
    }
  }
  std::string out;
  for (SegmentId id = 0; id < std::ssize(stack.segments); ++id) {
    const Segment& segment = stack.segments[id];
    out += fmt::format("{} {}", id, role_name(segment.role));
    if (const std::set<int32_t>& of = records[id]; of.size() == 1 && segment.role != Role::instruction)
      out += " of " + record_name(*of.begin());
    out += fmt::format(", {} token{}", segment.tokens.size(), segment.tokens.size() == 1 ? "" : "s");
    std::vector<SegmentId> seen;
    for (const Sight& sight : segment.sees) seen.push_back(sight.segment);
    if (!seen.empty()) out += fmt::format(", sees {}", fmt::join(seen, " "));
    out += "\n" + indented(text_of(segment.tokens) + marks[id]);
  }
  return out;
}

}  // namespace sheaf

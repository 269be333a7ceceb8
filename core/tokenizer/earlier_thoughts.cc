#include "core/tokenizer/earlier_thoughts.h"

#include <string_view>

namespace sheaf {
namespace {

constexpr std::string_view kThink = "<think>", kThinkEnd = "</think>";

bool is_tool_response(std::string_view text) {
  return text.starts_with("<tool_response>") && text.ends_with("</tool_response>");
}

std::string_view without_newlines(std::string_view text, bool at_end) {
  while (text.starts_with('\n')) text.remove_prefix(1);
  while (at_end && text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

/// The user's last turn that asks something; where there is none, the last turn.
size_t last_query(const std::vector<std::string>& turns) {
  for (size_t i = turns.size(); i-- > 0;)
    if (i % 2 == 0 && !is_tool_response(turns[i])) return i;
  return turns.size() - 1;
}

std::string thought_and_answer(std::string_view text, std::string_view answer) {
  std::string_view thought = text.substr(0, text.find(kThinkEnd));
  if (const size_t open = thought.rfind(kThink); open != thought.npos)
    thought.remove_prefix(open + kThink.size());
  thought = without_newlines(thought, true);
  if (thought.empty()) return std::string(answer);
  return std::string(kThink) + "\n" + std::string(thought) + "\n" + std::string(kThinkEnd) + "\n\n" +
         std::string(answer);
}

}  // namespace

std::vector<std::string> without_thoughts(std::vector<std::string> turns, EarlierThoughts thoughts) {
  if (thoughts == EarlierThoughts::keep) return turns;
  const size_t query = last_query(turns);
  for (size_t i = 1; i < turns.size(); i += 2) {
    const std::string& text = turns[i];
    const size_t end = text.rfind(kThinkEnd);
    const bool thinks = end != std::string::npos;
    if (!thinks && thoughts != EarlierThoughts::drop_lines) continue;
    std::string_view answer = std::string_view(text).substr(thinks ? end + kThinkEnd.size() : 0);
    if (thoughts != EarlierThoughts::drop) answer = without_newlines(answer, false);
    turns[i] = thoughts == EarlierThoughts::until_query && i > query ? thought_and_answer(text, answer)
                                                                     : std::string(answer);
  }
  return turns;
}

}  // namespace sheaf

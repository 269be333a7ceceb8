#include "core/tokenizer/chat_template.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "core/base/error.h"

namespace sheaf {
namespace {

ChatTemplate chatml(std::string name, std::string default_system, std::string thought = "") {
  ChatTemplate chat{std::move(name),
                    "<|im_start|>system\n",
                    "<|im_end|>\n",
                    "<|im_start|>user\n",
                    "<|im_end|>\n<|im_start|>assistant\n" + thought,
                    std::move(default_system)};
  chat.answer_close = "<|im_end|>\n";
  chat.thought = std::move(thought);
  return chat;
}

ChatTemplate llama3(std::string name, std::string default_system) {
  ChatTemplate chat{std::move(name),
                    "<|start_header_id|>system<|end_header_id|>\n\n",
                    "<|eot_id|>",
                    "<|start_header_id|>user<|end_header_id|>\n\n",
                    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
                    std::move(default_system)};
  chat.answer_close = "<|eot_id|>";
  chat.default_stays = chat.trims = true;
  return chat;
}

ChatTemplate qwen3() {
  ChatTemplate chat = chatml("qwen3", "", "<think>\n\n</think>\n\n");  // an empty thought: thinking off
  chat.thoughts = EarlierThoughts::until_query;
  chat.think = {"<|im_end|>\n<|im_start|>assistant\n<think>\n", "</think>", "</think>\n\n", "\n</think>\n\n"};
  return chat;
}

/// gpt-oss's, without a date. The system text is the developer's message; answers begin in the final channel.
ChatTemplate harmony() {
  ChatTemplate chat{"harmony",
                    "<|start|>developer<|message|># Instructions\n\n",
                    "<|end|>",
                    "<|start|>user<|message|>",
                    "<|end|><|start|>assistant<|channel|>final<|message|>",
                    ""};
  chat.answer_close = "<|end|>";
  chat.think = {"<|end|><|start|>assistant<|channel|>analysis<|message|>", "<|end|>", chat.turn, chat.turn};
  chat.opening =
      "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge "
      "cutoff: "
      "2024-06\n\nReasoning: low\n\n# Valid channels: analysis, commentary, final. Channel must be included "
      "for every message.<|end|>";
  return chat;
}

const std::vector<ChatTemplate>& all_templates() {
  static const std::vector<ChatTemplate> all = {
      chatml("chatml", ""),
      chatml("smollm2", "You are a helpful AI assistant named SmolLM, trained by Hugging Face"),
      chatml("qwen2.5", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
      qwen3(),
      llama3("llama3", ""),
      // Llama 3.1's template always opens with these two lines; the date is its fixed default.
      llama3("llama3.1", "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"),
      {"llama2", "<<SYS>>\n", "\n<</SYS>>\n\n", "[INST] ", " [/INST]", "", true},
      {"mistral", "", "\n\n", "[INST]", "[/INST]", "", true},
      {"mistral-v1", "", "\n\n", "[INST] ", " [/INST]", "", true},
      {"mistral-v3", "", "\n\n", "[INST] ", "[/INST]", "", true},
      {"phi", "<|system|>\n", "<|end|>\n", "<|user|>\n", "<|end|>\n<|assistant|>\n", "", false, "<|end|>\n"},
      {"phi4", "<|im_start|>system<|im_sep|>", "<|im_end|>", "<|im_start|>user<|im_sep|>",
       "<|im_end|><|im_start|>assistant<|im_sep|>", "", false, "<|im_end|>"},
      {"phi4-mini", "<|system|>", "<|end|>", "<|user|>", "<|end|><|assistant|>", "", false, "<|end|>"},
      {"olmo2", "<|system|>\n", "\n", "<|user|>\n", "\n<|assistant|>\n", "", false, "<|endoftext|>\n"},
      harmony(),
      {"plain", "", "", "", "", ""},
  };
  return all;
}

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

/// The turns of a dialog (the user's, the model's, …) as templates show them that drop earlier thoughts.
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

/// What stands before the user's first text.
std::vector<TextPiece> opening(const ChatTemplate& chat, const std::optional<std::string>& system) {
  std::vector<TextPiece> pieces;
  if (system) pieces = {{chat.system_open, true}, {*system, false}, {chat.system_close, true}};
  pieces.insert(chat.system_in_user ? pieces.begin() : pieces.end(), TextPiece{chat.user_open, true});
  if (!chat.opening.empty()) pieces.insert(pieces.begin(), {chat.opening, true});
  return pieces;
}

}  // namespace

const ChatTemplate& chat_template(std::string_view name) {
  const auto found = std::ranges::find(all_templates(), name, &ChatTemplate::name);
  if (found == all_templates().end())
    refuse("unknown chat template \"{}\"; use one of {}", name, fmt::join(chat_template_names(), ", "));
  return *found;
}

std::vector<std::string> chat_template_names() {
  std::vector<std::string> names;
  for (const ChatTemplate& chat : all_templates()) names.push_back(chat.name);
  return names;
}

ChatTemplate with_effort(ChatTemplate chat, std::string_view effort) {
  constexpr std::string_view kUsual = "Reasoning: low";
  if (const size_t at = chat.opening.find(kUsual); at != std::string::npos)
    chat.opening.replace(at, kUsual.size(), "Reasoning: " + std::string(effort));
  return chat;
}

std::vector<TextPiece> chat_pieces(const ChatTemplate& chat, std::string_view system, std::string_view user) {
  std::vector<TextPiece> pieces =
      opening(chat, system.empty() ? std::nullopt : std::optional<std::string>(system));
  pieces.push_back({std::string(user), false});
  pieces.push_back({chat.turn, true});
  return pieces;
}

DialogPieces dialog_pieces(const ChatTemplate& chat, const Dialog& dialog) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const auto trimmed = [&](std::string text) {
    if (!chat.trims) return text;
    text.erase(text.find_last_not_of(kBlanks) + 1);  // npos + 1 == 0
    return text.erase(0, text.find_first_not_of(kBlanks));
  };
  if (dialog.turns.size() > 1 && chat.answer_close.empty())
    refuse("the chat template {} supports only one turn, not a dialog with earlier answers", chat.name);
  if (dialog.system && !chat.takes_system)
    refuse("the chat template {} has no place for a system message; put it into the user's", chat.name);
  const std::vector<std::string> turns = without_thoughts(dialog.turns, chat.thoughts);
  std::optional<std::string> system = dialog.system;
  if (system)
    system = (chat.default_stays ? chat.default_system : "") + trimmed(*system);
  else if (!chat.default_system.empty())
    system = chat.default_system;
  DialogPieces pieces{opening(chat, system), {}};
  for (size_t i = 0; i + 1 < dialog.turns.size(); ++i) {
    pieces.before.push_back({trimmed(turns[i]), false});
    pieces.before.push_back({i % 2 ? chat.answer_close + chat.user_open
                                   : chat.turn.substr(0, chat.turn.size() - chat.thought.size()),
                             true});
  }
  pieces.last = {{trimmed(dialog.turns.back()), false}, {chat.turn, true}};
  return pieces;
}

}  // namespace sheaf

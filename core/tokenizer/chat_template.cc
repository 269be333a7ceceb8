#include "core/tokenizer/chat_template.h"

#include "core/base/error.h"
#include "core/tokenizer/earlier_thoughts.h"

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
      {"plain", "", "", "", "", ""},
  };
  return all;
}

}  // namespace

const ChatTemplate& chat_template(std::string_view name) {
  std::string names;
  for (const ChatTemplate& chat : all_templates()) {
    if (chat.name == name) return chat;
    if (!names.empty()) names += ", ";
    names += chat.name;
  }
  refuse("unknown chat template \"{}\"; use one of {}", name, names);
}

std::vector<std::string> chat_template_names() {
  std::vector<std::string> names;
  for (const ChatTemplate& chat : all_templates()) names.push_back(chat.name);
  return names;
}

std::vector<TextPiece> chat_pieces(const ChatTemplate& chat, std::string_view system, std::string_view user) {
  std::vector<TextPiece> pieces;
  const auto add_system = [&] {
    if (system.empty()) return;
    pieces.push_back({chat.system_open, true});
    pieces.push_back({std::string(system), false});
    pieces.push_back({chat.system_close, true});
  };
  if (!chat.system_in_user) add_system();
  pieces.push_back({chat.user_open, true});
  if (chat.system_in_user) add_system();
  pieces.push_back({std::string(user), false});
  pieces.push_back({chat.turn, true});
  return pieces;
}

DialogPieces dialog_pieces(const ChatTemplate& chat, const Dialog& dialog) {
  const auto trimmed = [&](std::string text) {
    if (!chat.trims) return text;
    const size_t first = text.find_first_not_of(" \t\r\n\v\f");
    if (first == std::string::npos) return std::string();
    return text.substr(first, text.find_last_not_of(" \t\r\n\v\f") - first + 1);
  };
  if (dialog.turns.size() > 1 && chat.answer_close.empty())
    refuse("the chat template {} supports only one turn, not a dialog with earlier answers", chat.name);
  if (dialog.system && !chat.takes_system)
    refuse("the chat template {} has no place for a system message; put it into the user's", chat.name);
  const std::vector<std::string> turns = without_thoughts(dialog.turns, chat.thoughts);
  DialogPieces pieces;
  std::vector<TextPiece>& before = pieces.before;
  const auto add_system = [&] {
    if (!dialog.system && chat.default_system.empty()) return;
    const std::string text = dialog.system ? trimmed(*dialog.system) : "";
    before.push_back({chat.system_open, true});
    before.push_back({dialog.system && !chat.default_stays ? text : chat.default_system + text, false});
    before.push_back({chat.system_close, true});
  };
  if (!chat.system_in_user) add_system();
  before.push_back({chat.user_open, true});
  if (chat.system_in_user) add_system();
  for (size_t i = 0; i + 1 < dialog.turns.size(); ++i) {
    before.push_back({trimmed(turns[i]), false});
    before.push_back({i % 2 ? chat.answer_close + chat.user_open
                            : chat.turn.substr(0, chat.turn.size() - chat.thought.size()),
                      true});
  }
  pieces.last = {{trimmed(dialog.turns.back()), false}, {chat.turn, true}};
  return pieces;
}

}  // namespace sheaf

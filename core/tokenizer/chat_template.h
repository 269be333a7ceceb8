#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/tokenizer.h"

namespace sheaf {

/// What becomes of the thoughts (`<think>…</think>`) in answers that were given before.
enum class EarlierThoughts : uint8_t {
  keep,
  drop,         ///< all up to the last </think> goes
  drop_lines,   ///< the newlines before the answer go too, with or without a thought
  until_query,  ///< Qwen3's: thoughts since the user's last question that is no <tool_response> stay, the
                ///< others go with the newlines after them
};

/// How an answer thinks first: a prompt has `turn` in place of ChatTemplate::turn, and the answer comes after
/// the thought and `close`. All empty: the template has no switch.
struct ChatThinking {
  std::string turn;   ///< "<|im_end|>\n<|im_start|>assistant\n<think>\n"
  std::string end;    ///< a token's text: "</think>"
  std::string close;  ///< begins with it
  std::string cut;    ///< in place of it, after a thought that had to end
};

/// A chat layout: one of a fixed, named set, or one that was read from a file or found by what the model's
/// own template renders. A prompt is: [bos] opening + user_open + user text + turn, and the model's answer
/// follows. Where there is a system text, system_open + system text + system_close stand before user_open (or
/// after it, see system_in_user).
struct ChatTemplate {
  std::string name;            ///< chatml, qwen3, ..., which docs/tokenizers.md lists; "own": the model's own
  std::string system_open;     ///< before the system text, e.g. "<|im_start|>system\n"
  std::string system_close;    ///< after it, e.g. "<|im_end|>\n"
  std::string user_open;       ///< before the user text, e.g. "<|im_start|>user\n"
  std::string turn;            ///< after it and before the answer, e.g. "<|im_end|>\n<|im_start|>assistant\n"
  std::string default_system;  ///< the model's own system text where the job gives none; may be empty
  bool system_in_user = false;    ///< the system text stands inside the user's turn, right after user_open
  std::string answer_close = {};  ///< after an answer that was given before; empty: one turn only
  std::string thought = {};       ///< the end of `turn` that is not there before such an answer
  bool default_stays = false;     ///< default_system stands before any other system text
  bool trims = false;             ///< texts of a dialog lose the white space around them
  EarlierThoughts thoughts = EarlierThoughts::keep;
  bool takes_system = true;  ///< false: a system text has no place
  ChatThinking think = {};
  std::string opening = {};  ///< markup before everything else, also where there is no system text
};

/// The template for an effort of the model ("low", "medium", "high"), where its opening names one.
ChatTemplate with_effort(ChatTemplate chat, std::string_view effort);

/// What was said in a chat so far.
struct Dialog {
  std::optional<std::string> system;
  std::vector<std::string> turns;  ///< the user's, the model's, …; the last is the user's
};

/// The prompt of one user turn (without bos): markup as markup, `system` and `user` as text. An empty
/// `system` leaves the system turn out; pass chat.default_system for the model's own.
std::vector<TextPiece> chat_pieces(const ChatTemplate& chat, std::string_view system, std::string_view user);

/// A dialog as the model's own template has it (without bos), in two parts: what stands before the text of
/// the last turn, and the rest. Refuses earlier answers where the template is for one turn, and a system text
/// where it has no place.
struct DialogPieces {
  std::vector<TextPiece> before, last;
};
DialogPieces dialog_pieces(const ChatTemplate& chat, const Dialog& dialog);

/// The template called `name`; refuses an unknown name and lists the known ones.
const ChatTemplate& chat_template(std::string_view name);
std::vector<std::string> chat_template_names();

/// The template of a model, and what to say of the choice.
struct ChatChoice {
  ChatTemplate chat;
  std::string why;           ///< "the model's own template renders the same"
  std::string warning = {};  ///< what the user should know; empty where nothing is wrong
};

/// Chooses by what the model's own Jinja template renders: a known one that renders the same, else one read
/// from its renderings. Where neither can be had, or the file carries no template, the one that looks like
/// it.
ChatChoice choose_chat_template(std::string_view jinja, const Tokenizer& tokenizer);

}  // namespace sheaf

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "core/tokenizer/chat_template.h"
#include "core/tokenizer/jinja.h"

namespace sheaf {
namespace {

/// A dialog whose texts say where they end up, and what the model's own template makes of it (without bos).
struct ChatProbe {
  Dialog dialog;
  bool odd = false;                     ///< with white space around texts, or with thoughts
  std::optional<std::string> own = {};  ///< nullopt: the template refuses the dialog
};

/// Texts that no template has.
constexpr std::string_view kProbeSystem = "Quartz 41 lies here.", kProbeUser = "Who heard zebra 17?",
                           kProbeAnswer = "Juniper 23 did.", kProbeNext = "When was violet 86?";

/// The first three probes: a user's turn, a system text before it, and a user's turn after an answer.
enum ProbePlace : size_t { probe_user, probe_system, probe_dialog };

/// How far a template agrees with the model's own.
enum class ChatFit : uint8_t {
  none,
  plain,  ///< but for white space around texts or earlier thoughts
  all,
};

constexpr size_t kMostRendered = 64 << 10;
/// Stands for bos, whose own text may also stand in a template for something else.
constexpr std::string_view kBos = "\x02bos\x03";

std::vector<ChatProbe> make_probes() {
  const std::string system(kProbeSystem), user(kProbeUser), answer(kProbeAnswer), next(kProbeNext);
  const std::string thought = "<think>\nPerhaps cobalt 5.\n</think>\n\n";
  const std::optional<std::string> none, spaced = " " + system + "\n";
  return {
      {{none, {user}}},
      {{system, {user}}},
      {{none, {user, answer, next}}},
      {{system, {user, answer, next}}},
      {{none, {user, answer, next, "Nobody.", "And walnut 9?"}}},
      {{none, {"\n " + user + " \n"}}, true},
      {{spaced, {"\n" + user + " "}}, true},
      {{spaced, {" " + user + "\n", "\n " + answer + "\n", "\n" + next + " "}}, true},
      {{none, {user, thought + answer, next}}, true},
      {{none, {user, thought + answer, next, thought + "Nobody.", "<tool_response>\n9\n</tool_response>"}},
       true},
  };
}

std::string text_of(const Tokenizer& tokenizer, std::optional<TokenId> id) {
  return id ? tokenizer.decode({&*id, 1}, false) : "";
}

/// What stands before, between and after `texts`, each of which must be there once and in this order.
std::optional<std::vector<std::string>> cut_at(const std::optional<std::string>& own,
                                               std::initializer_list<std::string_view> texts) {
  if (!own) return std::nullopt;
  std::vector<std::string> parts;
  size_t from = 0;
  for (const std::string_view text : texts) {
    const size_t at = own->find(text);
    if (at == std::string::npos || at < from || own->find(text, at + 1) != std::string::npos)
      return std::nullopt;
    parts.push_back(own->substr(from, at - from));
    from = at + text.size();
  }
  parts.push_back(own->substr(from));
  return parts;
}

std::string without_end(const std::string& text, size_t bytes) {
  return text.substr(0, text.size() - bytes);
}

/// "<|im_start|>system\n" for "<|im_start|>user\n", and back.
std::string other_role(std::string text, std::string_view role, std::string_view other) {
  if (const size_t at = text.find(role); at != text.npos) text.replace(at, role.size(), other);
  return text;
}

std::string common_end(std::string_view a, std::string_view b) {
  const auto differ = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first;
  std::string end(a.substr(static_cast<size_t>(a.rend() - differ)));
  while (!end.empty() && inside_character(end[0])) end.erase(0, 1);  // a whole character
  return end;
}

/// Where the model always gives a system text, user_open always follows something: it may be cut anywhere,
/// and is cut where a reader would.
void cut_user_open(ChatTemplate& chat, const std::string& after_answer) {
  const std::string before_user = chat.system_close + chat.user_open;
  std::string open = other_role(chat.system_open, "system", "user");
  const auto fits = [&](const std::string& text) {
    return before_user.ends_with(text) && after_answer.ends_with(text) && after_answer.size() > text.size();
  };
  if (open.empty() || !fits(open)) {
    open = common_end(before_user, after_answer);
    while (!open.empty() && !fits(open))
      open = open.substr(1 + (open.size() > 1 && inside_character(open[1])));
  }
  if (!fits(open)) return;
  chat.system_close = without_end(before_user, open.size());
  chat.answer_close = without_end(after_answer, open.size());
  chat.user_open = std::move(open);
}

/// A text of the model's own stands before any other: it follows the opening of the system's turn, which is
/// like the user's.
bool find_lasting_system(ChatTemplate& chat, const std::string& before, const std::string& after) {
  constexpr size_t most_opening = 100;  // bytes before "user"
  const size_t role = after.find("user");
  if (role == after.npos) return false;
  for (size_t at = role + 1; at > 0 && role + 1 - at <= most_opening; --at) {
    const std::string open = other_role(after.substr(at - 1), "user", "system");
    if (!before.starts_with(open) || before.size() == open.size()) continue;
    chat.system_open = open;
    chat.default_system = before.substr(open.size());
    chat.system_close = after.substr(0, at - 1);
    chat.user_open = after.substr(at - 1);
    chat.default_stays = true;
    return true;
  }
  return false;
}

/// `alone` stands before a user's text; with a system text `before` stands before that and `after` behind it.
bool place_system(ChatTemplate& chat, const std::string& alone, const std::string& before,
                  const std::string& after) {
  if (after.ends_with(alone)) {
    chat.system_open = before;
    chat.system_close = without_end(after, alone.size());
    return true;
  }
  if (alone == before + after) return find_lasting_system(chat, before, after);
  if (alone.starts_with(before) && alone.ends_with(after) && alone.size() > before.size() + after.size()) {
    chat.system_open = before;
    chat.default_system = without_end(alone, after.size()).substr(before.size());
    chat.user_open = after;
    return true;
  }
  if (!before.starts_with(alone)) return false;
  chat.system_in_user = true;
  chat.system_open = before.substr(alone.size());
  chat.system_close = after;
  return true;
}

/// Renders the probes. Throws BadText where the template is not understood, or refuses even a user's turn.
std::vector<ChatProbe> render_probes(const JinjaTemplate& jinja, const Tokenizer& tokenizer,
                                     bool thinking = false) {
  std::vector<ChatProbe> probes = make_probes();
  JinjaInputs inputs;
  const std::string bos = text_of(tokenizer, tokenizer.bos);
  inputs.bos_token = kBos;
  inputs.eos_token = text_of(tokenizer, tokenizer.eos);
  inputs.enable_thinking = thinking;
  for (ChatProbe& probe : probes) {
    inputs.messages.clear();
    if (probe.dialog.system) inputs.messages.push_back({"system", *probe.dialog.system});
    for (size_t i = 0; i < probe.dialog.turns.size(); ++i)
      inputs.messages.push_back({i % 2 ? "assistant" : "user", probe.dialog.turns[i]});
    try {
      probe.own = jinja.render(inputs);
    } catch (const JinjaRefusal& refusal) {
      if (&probe == &probes[probe_user])
        throw BadText(fmt::format("it refuses a user's message: {}", refusal.what()));
      continue;
    }
    if (probe.own->size() > kMostRendered)
      throw BadText(fmt::format("it makes more than {} KB of a short dialog", kMostRendered >> 10));
    // Whether a prompt starts with bos is the tokenizer's to say.
    if (probe.own->starts_with(kBos))
      probe.own->erase(0, kBos.size());
    else if (tokenizer.starts_with_bos && probe.own->starts_with(bos))
      probe.own->erase(0, bos.size());
    for (size_t at = 0; (at = probe.own->find(kBos, at)) != std::string::npos; at += bos.size())
      probe.own->replace(at, kBos.size(), bos);
  }
  return probes;
}

/// Where thinking turned on changes only what follows the user's text, and an empty thought stands there when
/// it is off: a switch.
void find_switch(const JinjaTemplate& jinja, const Tokenizer& tokenizer, ChatTemplate& chat) {
  constexpr std::string_view kOpened = "<think>", kClosed = "</think>";
  const size_t end = chat.turn.rfind(kClosed);
  if (end == std::string::npos) return;
  try {
    const auto off = cut_at(render_probes(jinja, tokenizer)[probe_user].own, {kProbeUser});
    const auto on = cut_at(render_probes(jinja, tokenizer, true)[probe_user].own, {kProbeUser});
    if (!off || !on || (*on)[0] != (*off)[0] || (*on)[1] == (*off)[1] || (*off)[1] != chat.turn) return;
    ChatThinking think{(*on)[1], std::string(kClosed), chat.turn.substr(end), {}};
    if (think.turn.rfind(kOpened) == std::string::npos) think.turn += std::string(kOpened) + "\n";
    think.cut = "\n" + think.close;
    chat.think = std::move(think);
  } catch (const BadText&) {  // of thinking alone: then there is no switch
  }
}

/// Compares where the model's own template takes the dialog and `chat` does.
ChatFit chat_fit(const ChatTemplate& chat, const std::vector<ChatProbe>& probes) {
  ChatFit fit = ChatFit::all;
  for (const ChatProbe& probe : probes) {
    if (!probe.own || (probe.dialog.turns.size() > 1 && chat.answer_close.empty()) ||
        (probe.dialog.system && !chat.takes_system))
      continue;
    const DialogPieces pieces = dialog_pieces(chat, probe.dialog);
    std::string text;
    for (const auto& part : {pieces.before, pieces.last})
      for (const TextPiece& piece : part) text += piece.text;
    if (text == *probe.own) continue;
    if (!probe.odd) return ChatFit::none;
    fit = ChatFit::plain;
  }
  return fit;
}

/// The layout that the renderings show, under the name "own"; nullopt where it is none that ChatTemplate can
/// say.
std::optional<ChatTemplate> derive_chat_template(const std::vector<ChatProbe>& probes) {
  const auto alone = cut_at(probes[probe_user].own, {kProbeUser});
  if (!alone) return std::nullopt;
  ChatTemplate chat{"own", {}, {}, (*alone)[0], (*alone)[1], {}};
  const auto system = cut_at(probes[probe_system].own, {kProbeSystem, kProbeUser});
  chat.takes_system =
      system && (*system)[2] == chat.turn && place_system(chat, (*alone)[0], (*system)[0], (*system)[1]);

  const auto dialog = cut_at(probes[probe_dialog].own, {kProbeUser, kProbeAnswer, kProbeNext});
  if (dialog && (*dialog)[0] == (*alone)[0] && (*dialog)[3] == chat.turn &&
      chat.turn.starts_with((*dialog)[1])) {
    const std::string& after_answer = (*dialog)[2];
    if (chat.user_open != (*alone)[0])
      cut_user_open(chat, after_answer);
    else if (after_answer.ends_with(chat.user_open))
      chat.answer_close = without_end(after_answer, chat.user_open.size());
    if (!chat.answer_close.empty()) chat.thought = chat.turn.substr((*dialog)[1].size());
  }
  return chat;
}

constexpr std::string_view kOtherwise =
    "; to use another, set model.chat to a template's name or to a YAML file";
constexpr std::string_view kAlmost = "except for white space around texts or thoughts in earlier answers";

std::string by_jinja(std::string_view jinja) {
  const auto has = [jinja](std::string_view text) { return jinja.find(text) != std::string_view::npos; };
  if (has("<|im_sep|>")) return "phi4";
  if (has("<|channel|>") && has("<|message|>")) return "harmony";
  if (has("<|im_start|>")) {
    if (has("named SmolLM")) return "smollm2";
    if (has("enable_thinking") || has("<think>")) return "qwen3";
    return has("You are Qwen") ? "qwen2.5" : "chatml";
  }
  if (has("<|start_header_id|>")) return has("Cutting Knowledge Date") ? "llama3.1" : "llama3";
  if (has("<<SYS>>")) return "llama2";
  if (has("[INST]")) {
    if (!has("[INST] ")) return "mistral";
    return has(" [/INST]") ? "mistral-v1" : "mistral-v3";
  }
  if (has("<|end|>") && has("<|assistant|>")) return has("<|user|>") ? "phi" : "phi4-mini";
  if (has("<|user|>") && has("<|assistant|>")) return "olmo2";
  return {};
}

std::string by_tokens(const Tokenizer& tokenizer) {
  const auto has = [&tokenizer](std::string_view piece) { return tokenizer.find(piece).has_value(); };
  const auto special = [&tokenizer](std::string_view piece) {
    const auto id = tokenizer.find(piece);
    return id && tokenizer.is_special(*id);
  };
  if (special("<|im_sep|>")) return "phi4";
  if (special("<|channel|>") && special("<|message|>")) return "harmony";
  if (special("<|im_start|>")) return has("<think>") ? "qwen3" : "chatml";
  if (special("<|start_header_id|>")) return "llama3";
  if (special("[INST]")) return "mistral";
  if (special("<|end|>") && special("<|assistant|>")) return "phi";
  return "plain";
}

bool opens_thought(const ChatTemplate& chat) {
  return chat.turn.substr(0, chat.turn.find_last_not_of(" \n") + 1).ends_with("<think>");
}

struct FittingChat {
  ChatTemplate chat;
  ChatFit fit = ChatFit::none;
};

void keep_better(FittingChat& best, const ChatTemplate& chat, const std::vector<ChatProbe>& probes) {
  if (best.fit == ChatFit::all) return;
  if (const ChatFit fit = chat_fit(chat, probes); fit > best.fit) best = {chat, fit};
}

FittingChat best_known(const std::string& guess, const std::vector<ChatProbe>& probes) {
  FittingChat best;
  keep_better(best, chat_template(guess), probes);
  for (const std::string& name : chat_template_names()) keep_better(best, chat_template(name), probes);
  return best;
}

/// What the renderings show, with the rules for white space and thoughts that fit best.
FittingChat best_own(const std::vector<ChatProbe>& probes) {
  FittingChat best;
  std::optional<ChatTemplate> chat = derive_chat_template(probes);
  for (; chat && best.fit == ChatFit::none; chat->answer_close.clear(), chat->thought.clear()) {
    for (const bool trims : {false, true})
      for (const EarlierThoughts thoughts : {EarlierThoughts::keep, EarlierThoughts::drop,
                                             EarlierThoughts::drop_lines, EarlierThoughts::until_query}) {
        chat->trims = trims;
        chat->thoughts = thoughts;
        keep_better(best, *chat, probes);
      }
    if (chat->answer_close.empty()) break;  // for one turn, it was tried too
  }
  return best;
}

}  // namespace

ChatChoice choose_chat_template(std::string_view jinja, const Tokenizer& tokenizer) {
  const std::string look = by_jinja(jinja);
  const ChatTemplate& guess = chat_template(look.empty() ? by_tokens(tokenizer) : look);
  if (jinja.empty()) return {guess, "the model has no template of its own; chosen by its tokens"};
  if (look == "harmony") return {guess, "by its look; the model's own writes today's date into every prompt"};
  try {
    const JinjaTemplate own_jinja(jinja);
    const std::vector<ChatProbe> probes = render_probes(own_jinja, tokenizer);
    const FittingChat known = best_known(guess.name, probes);
    if (known.fit == ChatFit::all) return {known.chat, "the model's own template renders the same"};
    FittingChat own = best_own(probes);
    find_switch(own_jinja, tokenizer, own.chat);
    if (own.fit == ChatFit::all)
      return {
          own.chat, "read from the model's own template",
          !opens_thought(own.chat)
              ? ""
              : fmt::format("the model's own chat template opens a thought (<think>) before every answer, so "
                            "answers begin inside of it and short ones may hold nothing else{}",
                            kOtherwise)};
    for (const FittingChat& almost : {known, own})
      if (almost.fit == ChatFit::plain)
        return {almost.chat, fmt::format("the model's own template renders the same, {}", kAlmost),
                fmt::format("the chat template {} renders as the model's own does, {}{}", almost.chat.name,
                            kAlmost, kOtherwise)};
    return {guess, "the model's own template renders otherwise",
            fmt::format(
                "the model's own chat template renders prompts in a way that sheaf does not know; it uses "
                "{}, which differs from it{}",
                guess.name, kOtherwise)};
  } catch (const BadText& error) {
    const std::string reason = shorten_text(error.what(), 200);
    return {guess, fmt::format("by its look; the model's own template was not understood: {}", reason),
            fmt::format(
                "the model's own chat template was not understood ({}); sheaf uses {}, which looks like it, "
                "and may differ{}",
                reason, guess.name, kOtherwise)};
  }
}

}  // namespace sheaf

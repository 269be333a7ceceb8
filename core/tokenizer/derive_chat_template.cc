#include <algorithm>

#include "core/tokenizer/chat_probes.h"

namespace sheaf {
namespace {

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
  while (!end.empty() && (end[0] & 0xC0) == 0x80) end.erase(0, 1);  // a whole character
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
      open = open.substr(1 + (open.size() > 1 && (open[1] & 0xC0) == 0x80));
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

}  // namespace

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

}  // namespace sheaf

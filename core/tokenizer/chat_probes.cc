#include "core/tokenizer/chat_probes.h"

namespace sheaf {
namespace {

constexpr size_t kMostRendered = 64 << 10;
/// Stands for bos, whose own text may also stand in a template for something else.
constexpr std::string_view kBos = "\x02bos\x03";

std::vector<ChatProbe> make_probes() {
  const std::string system(kProbeSystem), user(kProbeUser), answer(kProbeAnswer), next(kProbeNext);
  const std::string thought = "<think>\nPerhaps cobalt 5.\n</think>\n\n";
  std::vector<ChatProbe> probes;
  const auto add = [&](std::optional<std::string> said, std::vector<std::string> turns, bool odd) {
    probes.push_back({{std::move(said), std::move(turns)}, odd, {}});
  };
  add({}, {user}, false);
  add(system, {user}, false);
  add({}, {user, answer, next}, false);
  add(system, {user, answer, next}, false);
  add({}, {user, answer, next, "Nobody.", "And walnut 9?"}, false);
  add({}, {"\n " + user + " \n"}, true);
  add(" " + system + "\n", {"\n" + user + " "}, true);
  add(" " + system + "\n", {" " + user + "\n", "\n " + answer + "\n", "\n" + next + " "}, true);
  add({}, {user, thought + answer, next}, true);
  add({}, {user, thought + answer, next, thought + "Nobody.", "<tool_response>\n9\n</tool_response>"}, true);
  return probes;
}

std::string text_of(const Tokenizer& tokenizer, std::optional<TokenId> id) {
  return id ? tokenizer.decode({&*id, 1}, false) : "";
}

}  // namespace

std::vector<ChatProbe> render_probes(const JinjaTemplate& jinja, const Tokenizer& tokenizer) {
  std::vector<ChatProbe> probes = make_probes();
  JinjaInputs inputs;
  const std::string bos = text_of(tokenizer, tokenizer.bos);
  inputs.bos_token = kBos;
  inputs.eos_token = text_of(tokenizer, tokenizer.eos);
  inputs.enable_thinking = false;
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

}  // namespace sheaf

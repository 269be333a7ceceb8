#include "core/tokenizer/choose_chat_template.h"

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "core/tokenizer/chat_probes.h"

namespace sheaf {
namespace {

constexpr std::string_view kOtherwise =
    "; to use another, set model.chat to a template's name or to a YAML file";
constexpr std::string_view kAlmost = "except for white space around texts or thoughts in earlier answers";

std::string by_jinja(std::string_view jinja) {
  const auto has = [jinja](std::string_view text) { return jinja.find(text) != std::string_view::npos; };
  if (has("<|im_sep|>")) return "phi4";
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
  if (special("<|im_start|>")) return has("<think>") ? "qwen3" : "chatml";
  if (special("<|start_header_id|>")) return "llama3";
  if (special("[INST]")) return "mistral";
  if (special("<|end|>") && special("<|assistant|>")) return "phi";
  return "plain";
}

std::string by_look(std::string_view jinja, const Tokenizer& tokenizer) {
  std::string name = by_jinja(jinja);
  return name.empty() ? by_tokens(tokenizer) : name;
}

bool opens_thought(const ChatTemplate& chat) {
  return chat.turn.substr(0, chat.turn.find_last_not_of(" \n") + 1).ends_with("<think>");
}

std::string thought_warning() {
  return fmt::format(
      "the model's own chat template opens a thought (<think>) before every answer, so answers begin inside "
      "of it and "
      "short ones may hold nothing else{}",
      kOtherwise);
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
  const ChatTemplate& guess = chat_template(by_look(jinja, tokenizer));
  if (jinja.empty()) return {guess, "the model has no template of its own; chosen by its tokens"};
  try {
    const std::vector<ChatProbe> probes = render_probes(JinjaTemplate(jinja), tokenizer);
    const FittingChat known = best_known(guess.name, probes);
    if (known.fit == ChatFit::all) return {known.chat, "the model's own template renders the same"};
    const FittingChat own = best_own(probes);
    if (own.fit == ChatFit::all)
      return {own.chat, "read from the model's own template",
              opens_thought(own.chat) ? thought_warning() : ""};
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

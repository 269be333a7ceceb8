#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/chat_template.h"
#include "core/tokenizer/jinja.h"

namespace sheaf {

/// A dialog whose texts say where they end up, and what the model's own template makes of it (without bos).
struct ChatProbe {
  Dialog dialog;
  bool odd = false;                ///< with white space around texts, or with thoughts
  std::optional<std::string> own;  ///< nullopt: the template refuses the dialog
};

/// Texts that no template has.
constexpr std::string_view kProbeSystem = "Quartz 41 lies here.", kProbeUser = "Who heard zebra 17?",
                           kProbeAnswer = "Juniper 23 did.", kProbeNext = "When was violet 86?";

/// The first three probes: a user's turn, a system text before it, and a user's turn after an answer.
enum ProbePlace : size_t { probe_user, probe_system, probe_dialog };

/// Renders the probes. Throws BadText where the template is not understood, or refuses even a user's turn.
std::vector<ChatProbe> render_probes(const JinjaTemplate& jinja, const Tokenizer& tokenizer);

/// How far a template agrees with the model's own.
enum class ChatFit : uint8_t {
  none,
  plain,  ///< but for white space around texts or earlier thoughts
  all,
};

/// Compares where the model's own template takes the dialog and `chat` does.
ChatFit chat_fit(const ChatTemplate& chat, const std::vector<ChatProbe>& probes);

/// The layout that the renderings show, under the name "own"; nullopt where it is none that ChatTemplate can
/// say.
std::optional<ChatTemplate> derive_chat_template(const std::vector<ChatProbe>& probes);

}  // namespace sheaf

#pragma once
#include <string>
#include <string_view>

#include "core/tokenizer/chat_template.h"

namespace sheaf {

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

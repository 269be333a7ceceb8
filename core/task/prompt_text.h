#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/chat_template.h"
#include "core/tokenizer/tokenizer.h"

namespace sheaf {

/// The tokens of a prompt part that others stand before.
Tokens encode_part(const Tokenizer& tokenizer, const std::vector<TextPiece>& pieces);
Tokens encode_part(const Tokenizer& tokenizer, const std::string& text);

/// The start of every prompt: beginning of text where the model wants one, the system turn, and the user's
/// turn up to and including `text`.
Tokens encode_instruction(const Tokenizer& tokenizer, const ChatTemplate& chat, const std::string& text);

}  // namespace sheaf

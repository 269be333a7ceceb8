#pragma once

#include "core/tokenizer/chat_template.h"

namespace sheaf {

using TextPieces = std::vector<TextPiece>;

/// The tokens of a prompt part that others stand before.
Tokens encode_part(const Tokenizer& tokenizer, const TextPieces& pieces);
Tokens encode_part(const Tokenizer& tokenizer, const std::string& text);

/// What a prompt begins with: the token for the beginning of a text where the model wants one.
Tokens begin_text(const Tokenizer& tokenizer);

/// The start of every prompt: beginning of text where the model wants one, the system turn, and the user's
/// turn up to and including `text`.
TextPieces instruction_pieces(const ChatTemplate& chat, const std::string& text);
Tokens encode_instruction(const Tokenizer& tokenizer, const TextPieces& pieces);
Tokens encode_instruction(const Tokenizer& tokenizer, const ChatTemplate& chat, const std::string& text);

/// The first of the parts whose last token is not where the tokenizer cuts their joined text; none where the
/// parts' tokens are those of the whole.
std::optional<size_t> find_bad_seam(const Tokenizer& tokenizer, const std::vector<TextPieces>& parts);

/// The text between two parts, shared out so that the parts meet where the tokenizer cuts.
struct Between {
  std::string first;   ///< ends the part before
  std::string second;  ///< begins the part after
};
/// `before` and `after`: how the parts end and begin, as a rule.
Between share_out(const Tokenizer& tokenizer, const std::string& before, const std::string& between,
                  const std::string& after);

/// What to tell the user of a prompt with such a seam; nothing where it has none.
std::vector<std::string> seam_notices(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                      const std::vector<TextPieces>& parts);

}  // namespace sheaf

#include "core/task/prompt_text.h"

namespace sheaf {

Tokens encode_part(const Tokenizer& tokenizer, const std::vector<TextPiece>& pieces) {
  Tokens tokens;
  tokenizer.encode_pieces(pieces, tokens, true);
  return tokens;
}

Tokens encode_part(const Tokenizer& tokenizer, const std::string& text) {
  return encode_part(tokenizer, std::vector<TextPiece>{{text, false}});
}

Tokens encode_instruction(const Tokenizer& tokenizer, const ChatTemplate& chat, const std::string& text) {
  std::vector<TextPiece> pieces = chat_pieces(chat, chat.default_system, text);
  pieces.pop_back();  // the turn to the model comes after the question
  Tokens tokens;
  if (tokenizer.starts_with_bos && tokenizer.bos) tokens.push_back(*tokenizer.bos);
  tokenizer.encode_pieces(pieces, tokens);
  return tokens;
}

}  // namespace sheaf

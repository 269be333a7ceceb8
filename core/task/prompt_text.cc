#include "core/task/prompt_text.h"

namespace sheaf {

Tokens encode_part(const Tokenizer& tokenizer, const std::vector<TextPiece>& pieces) {
  Tokens tokens;
  tokenizer.encode_pieces(pieces, tokens);
  return tokens;
}

Tokens encode_part(const Tokenizer& tokenizer, const std::string& text) {
  return encode_part(tokenizer, std::vector<TextPiece>{{text, false}});
}

Tokens encode_instruction(const Tokenizer& tokenizer, const ChatTemplate& chat, const std::string& text) {
  std::vector<TextPiece> pieces;
  if (!chat.default_system.empty())
    pieces = {{chat.system_open, true}, {chat.default_system, false}, {chat.system_close, true}};
  pieces.push_back({chat.user_open, true});
  pieces.push_back({text, false});
  Tokens tokens;
  if (tokenizer.starts_with_bos && tokenizer.bos) tokens.push_back(*tokenizer.bos);
  append(tokens, encode_part(tokenizer, pieces));
  return tokens;
}

}  // namespace sheaf

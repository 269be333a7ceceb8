#include "core/task/prompt_text.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/text/printable.h"

namespace sheaf {

Tokens encode_part(const Tokenizer& tokenizer, const TextPieces& pieces) {
  Tokens tokens;
  tokenizer.encode_pieces(pieces, tokens, true);
  return tokens;
}

Tokens encode_part(const Tokenizer& tokenizer, const std::string& text) {
  return encode_part(tokenizer, TextPieces{{text, false}});
}

Tokens begin_text(const Tokenizer& tokenizer) {
  return tokenizer.starts_with_bos && tokenizer.bos ? Tokens{*tokenizer.bos} : Tokens();
}

TextPieces instruction_pieces(const ChatTemplate& chat, const std::string& text) {
  TextPieces pieces = chat_pieces(chat, chat.default_system, text);
  pieces.pop_back();  // the turn to the model comes after the question
  return pieces;
}

Tokens encode_instruction(const Tokenizer& tokenizer, const TextPieces& pieces) {
  Tokens tokens = begin_text(tokenizer);
  tokenizer.encode_pieces(pieces, tokens);
  return tokens;
}

Tokens encode_instruction(const Tokenizer& tokenizer, const ChatTemplate& chat, const std::string& text) {
  return encode_instruction(tokenizer, instruction_pieces(chat, text));
}

std::optional<size_t> find_bad_seam(const Tokenizer& tokenizer, const std::vector<TextPieces>& parts) {
  Tokens apart, whole;
  TextPieces joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    tokenizer.encode_pieces(parts[i], apart, i > 0);
    joined.insert(joined.end(), parts[i].begin(), parts[i].end());
    whole.clear();
    tokenizer.encode_pieces(joined, whole);
    if (apart != whole) return i - 1;
  }
  return std::nullopt;
}

Between share_out(const Tokenizer& tokenizer, const std::string& before, const std::string& between,
                  const std::string& after) {
  for (size_t i = 0; i <= between.size(); ++i) {
    Between shares{between.substr(0, i), between.substr(i)};
    if (!find_bad_seam(tokenizer, {{{before + shares.first, false}}, {{shares.second + after, false}}}))
      return shares;
  }
  return {"", between};
}

std::vector<std::string> seam_notices(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                      const std::vector<TextPieces>& parts) {
  const std::optional<size_t> seam = find_bad_seam(tokenizer, parts);
  if (!seam) return {};
  constexpr size_t kShown = 12;
  const auto quoted = [](const std::string& text) { return '"' + printable_line(text) + '"'; };
  const auto text_of = [](const TextPieces& pieces) {
    std::string text;
    for (const TextPiece& piece : pieces) text += piece.text;
    return text;
  };
  const std::string before = text_of(parts[*seam]), after = text_of(parts[*seam + 1]);
  return {fmt::format(
      "the tokenizer joins {} and {} where sheaf tokenizes the parts of a prompt one by one (chat template "
      "{}), so the model reads tokens that it rarely saw in training; answers may be worse",
      quoted(before.substr(before.size() - std::min(before.size(), kShown))), quoted(after.substr(0, kShown)),
      chat.name)};
}

}  // namespace sheaf

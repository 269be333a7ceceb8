#include "core/tokenizer/tokenizer.h"

namespace sheaf {

void Tokenizer::find_special(std::string_view, size_t, size_t, std::vector<SpecialSpan>&) const {}

void Tokenizer::encode_run(std::string_view run, Before, Tokens& out) const {
  encode(run, false, out);
}

void Tokenizer::encode_pieces(std::span<const TextPiece> pieces, Tokens& out, bool continues) const {
  std::string text;
  std::vector<SpecialSpan> special;
  std::vector<std::pair<size_t, size_t>> markup;  // neighbouring markup pieces are one range
  for (const TextPiece& piece : pieces) {
    const size_t begin = text.size();
    text += piece.text;
    if (!piece.markup || piece.text.empty()) continue;
    if (!markup.empty() && markup.back().second == begin)
      markup.back().second = text.size();
    else
      markup.emplace_back(begin, text.size());
  }
  for (const auto& [begin, end] : markup) find_special(text, begin, end, special);
  size_t at = 0;
  Before before = continues ? Before::text : Before::nothing;
  for (const SpecialSpan& span : special) {
    if (span.begin > at) encode_run(std::string_view(text).substr(at, span.begin - at), before, out);
    out.push_back(span.id);
    at = span.end;
    before = Before::special;
  }
  if (at < text.size()) encode_run(std::string_view(text).substr(at), before, out);
}

}  // namespace sheaf

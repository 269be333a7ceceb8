#include "core/tokenizer/splitting_tokenizer.h"

#include <algorithm>

#include "core/text/utf8.h"

namespace sheaf {

SplittingTokenizer::SplittingTokenizer(Vocabulary vocabulary, AddedTokens added)
    : vocabulary_(std::move(vocabulary)), added_(std::move(added)) {
  added_.link();
  special_.resize(static_cast<size_t>(vocabulary_.size()));
  for (const AddedToken& token : added_.tokens())
    if (token.special && vocabulary_.holds(token.id)) special_[static_cast<size_t>(token.id)] = true;
}

void SplittingTokenizer::encode(std::string_view text, bool parse_special, Tokens& out) const {
  std::string repaired;
  encode_split(valid_text(text, repaired), parse_special, Before::nothing, out);
}

void SplittingTokenizer::encode_run(std::string_view run, Before before, Tokens& out) const {
  std::string repaired;
  encode_split(valid_text(run, repaired), false, before, out);
}

void SplittingTokenizer::encode_split(std::string_view text, bool parse_special, Before before,
                                      Tokens& out) const {
  std::vector<SpecialSpan> spans;
  added_.find(text, 0, text.size(), parse_special, spans);
  size_t at = 0;
  for (const SpecialSpan& span : spans) {
    if (span.begin > at) encode_gap(text.substr(at, span.begin - at), before, out);
    out.push_back(span.id);
    at = span.end;
    before = Before::special;
  }
  if (at < text.size()) encode_gap(text.substr(at), before, out);
}

void SplittingTokenizer::find_special(std::string_view text, size_t begin, size_t end,
                                      std::vector<SpecialSpan>& out) const {
  added_.find(text, begin, end, true, out);
}

std::optional<TokenId> SplittingTokenizer::find(std::string_view piece) const {
  if (const AddedToken* token = added_.find_content(piece)) return token->id;
  return vocabulary_.find(piece);
}

bool SplittingTokenizer::is_special(TokenId id) const {
  return vocabulary_.holds(id) && special_[static_cast<size_t>(id)];
}

void SplittingTokenizer::collect_end_tokens() {
  const auto add = [this](TokenId id) {
    if (std::ranges::find(end_tokens, id) == end_tokens.end()) end_tokens.push_back(id);
  };
  if (eos) add(*eos);
  for (const char* name : {"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>",
                           "<|end|>", "</s>", "<end_of_turn>", "<|return|>"}) {
    const AddedToken* token = added_.find_content(name);
    if (token != nullptr && token->special) add(token->id);
  }
}

}  // namespace sheaf

#include <algorithm>
#include <ranges>

#include "core/base/error.h"
#include "core/text/unicode.h"
#include "core/text/utf8.h"
#include "core/tokenizer/splitting_tokenizer.h"

namespace sheaf {
namespace {

constexpr size_t kBlock = 1 << 16;  // bytes searched at once, so that what is found takes little memory

size_t strip_left(std::string_view text, size_t at, size_t floor) {
  const uint8_t* classes = char_classes();
  while (at > floor) {
    const size_t start = character_before(text, at);
    if (!(classes[decode_valid(text.data() + start).point] & CharClass::is_space)) break;
    at = start;
  }
  return at;
}

size_t strip_right(std::string_view text, size_t at) {
  const uint8_t* classes = char_classes();
  while (at < text.size()) {
    const Decoded d = decode_valid(text.data() + at);
    if (!(classes[d.point] & CharClass::is_space)) break;
    at += d.bytes;
  }
  return at;
}

}  // namespace

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
  encode_around(text, special, continues ? Before::text : Before::nothing, out,
                [&](std::string_view run, Before before) { encode_run(run, before, out); });
}

void AddedTokens::add(AddedToken token) {
  if (token.content.empty()) return;
  if (token.content.size() > longest_content)
    refuse("added token {} is {} bytes long; at most {} are allowed", token.id, token.content.size(),
           longest_content);
  const auto number = static_cast<size_t>(contents_.add(token.content));
  if (number == tokens_.size())
    tokens_.push_back(std::move(token));
  else
    tokens_[number] = std::move(token);
}

void AddedTokens::find(std::string_view text, size_t begin, size_t end, bool special,
                       std::vector<SpecialSpan>& out) const {
  if (tokens_.empty()) return;
  size_t floor = out.empty() ? 0 : out.back().end;
  size_t at = std::max(begin, floor);
  std::vector<PatternSet::Match> matches;
  while (at < end) {
    const size_t block_end = std::min(end, at + kBlock);
    contents_.search(text, at, block_end, end, matches);
    for (const PatternSet::Match& match : std::views::reverse(matches)) {
      if (match.at < at) continue;  // inside the token before
      const AddedToken& token = tokens_[static_cast<size_t>(match.pattern)];
      at = match.at + token.content.size();
      if (token.special && !special) continue;
      const size_t first = token.lstrip ? strip_left(text, match.at, floor) : match.at;
      at = floor = token.rstrip ? strip_right(text, at) : at;
      out.push_back({first, floor, token.id});
    }
    at = std::max(at, block_end);
  }
}

const AddedToken* AddedTokens::find_content(std::string_view content) const {
  const int32_t found = contents_.find(content);
  return found < 0 ? nullptr : &tokens_[static_cast<size_t>(found)];
}

SplittingTokenizer::SplittingTokenizer(Vocabulary vocabulary, AddedTokens added, bool space_in_front)
    : vocabulary_(std::move(vocabulary)), added_(std::move(added)), space_in_front_(space_in_front) {
  added_.link();
  special_.resize(static_cast<size_t>(vocabulary_.size()));
  for (const AddedToken& token : added_.tokens())
    if (token.special && vocabulary_.holds(token.id)) special_[static_cast<size_t>(token.id)] = true;
}

void SplittingTokenizer::encode_split(std::string_view text, bool parse_special, Before before,
                                      Tokens& out) const {
  std::string repaired;
  if (valid_prefix(text) < text.size()) text = repaired = valid_utf8(text);
  std::vector<SpecialSpan> spans;
  added_.find(text, 0, text.size(), parse_special, spans);
  encode_around(text, spans, before, out,
                [&](std::string_view gap, Before after) { encode_gap(gap, after, out); });
}

std::string SplittingTokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string text;
  for (const TokenId id : ids)
    if (id >= 0 && id < vocab_size() && !(skip_special && is_special(id))) text += vocabulary_.bytes(id);
  if (space_in_front_ && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::optional<TokenId> SplittingTokenizer::find(std::string_view piece) const {
  if (const AddedToken* token = added_.find_content(piece)) return token->id;
  const TokenId id = vocabulary_.find_id(piece);
  return id < 0 ? std::nullopt : std::optional(id);
}

void SplittingTokenizer::collect_end_tokens() {
  const auto add = [this](TokenId id) {
    if (std::ranges::find(end_tokens, id) == end_tokens.end()) end_tokens.push_back(id);
  };
  if (eos) add(*eos);
  for (const char* name : {"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>",
                           "<|end|>", "</s>", "<end_of_turn>", "<|return|>", "<|call|>"}) {
    const AddedToken* token = added_.find_content(name);
    if (token != nullptr && token->special) add(token->id);
  }
}

}  // namespace sheaf

#include "core/tokenizer/added_tokens.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr size_t kBlock = 1 << 16;  // bytes searched at once, so that what is found takes little memory

size_t strip_left(std::string_view text, size_t at, size_t floor) {
  const uint8_t* classes = char_classes();
  while (at > floor) {
    size_t start = at - 1;
    while (start > floor && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (!(classes[decode_valid(text.data() + start).point] & is_space)) break;
    at = start;
  }
  return at;
}

size_t strip_right(std::string_view text, size_t at) {
  const uint8_t* classes = char_classes();
  while (at < text.size()) {
    const Decoded d = decode_valid(text.data() + at);
    if (!(classes[d.point] & is_space)) break;
    at += d.bytes;
  }
  return at;
}

}  // namespace

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
    for (auto match = matches.rbegin(); match != matches.rend(); ++match) {
      if (match->at < at) continue;  // inside the token before
      const AddedToken& token = tokens_[static_cast<size_t>(match->pattern)];
      at = match->at + token.content.size();
      if (token.special && !special) continue;
      const size_t first = token.lstrip ? strip_left(text, match->at, floor) : match->at;
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

}  // namespace sheaf

#include "core/tokenizer/added_tokens.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

uint64_t edge_key(uint32_t node, char byte) {
  return uint64_t{node} << 8 | static_cast<unsigned char>(byte);
}

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
    refuse("added token {} is {} bytes long; sheaf takes at most {}", token.id, token.content.size(),
           longest_content);
  uint32_t node = 0;
  for (const char byte : token.content) {
    const auto [it, fresh] =
        edges_.try_emplace(edge_key(node, byte), static_cast<uint32_t>(node_token_.size()));
    if (fresh) node_token_.push_back(-1);
    node = it->second;
  }
  starts_[static_cast<unsigned char>(token.content[0])] = true;
  if (node_token_[node] >= 0) {
    tokens_[static_cast<size_t>(node_token_[node])] = std::move(token);
  } else {
    node_token_[node] = static_cast<int32_t>(tokens_.size());
    tokens_.push_back(std::move(token));
  }
}

int32_t AddedTokens::match(std::string_view text, size_t at, size_t end) const {
  int32_t found = -1;
  uint32_t node = 0;
  for (; at < end; ++at) {
    const auto it = edges_.find(edge_key(node, text[at]));
    if (it == edges_.end()) break;
    node = it->second;
    if (node_token_[node] >= 0) found = node_token_[node];
  }
  return found;
}

void AddedTokens::find(std::string_view text, size_t begin, size_t end, bool special,
                       std::vector<SpecialSpan>& out) const {
  if (tokens_.empty()) return;
  size_t floor = out.empty() ? 0 : out.back().end;
  size_t at = std::max(begin, floor);
  while (at < end) {
    if (!starts_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const int32_t found = match(text, at, end);
    if (found < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found)];
    const size_t stop = at + token.content.size();
    if (token.special && !special) {
      at = stop;
      continue;
    }
    const size_t first = token.lstrip ? strip_left(text, at, floor) : at;
    floor = token.rstrip ? strip_right(text, stop) : stop;
    out.push_back({first, floor, token.id});
    at = std::max(floor, stop);
  }
}

const AddedToken* AddedTokens::find_content(std::string_view content) const {
  const int32_t found = match(content, 0, content.size());
  if (found < 0) return nullptr;
  const AddedToken& token = tokens_[static_cast<size_t>(found)];
  return token.content == content ? &token : nullptr;
}

}  // namespace sheaf

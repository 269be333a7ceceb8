#include "core/tokenizer/token_trie.h"

#include <algorithm>

namespace sheaf {
namespace {

struct Spelled {
  std::string bytes;
  TokenId id;

  auto operator<=>(const Spelled&) const = default;
};

std::vector<Spelled> spell_all(const Tokenizer& tokenizer) {
  std::vector<Spelled> spelled;
  const TokenBytes bytes(tokenizer);
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_special(id) || std::ranges::find(tokenizer.end_tokens, id) != tokenizer.end_tokens.end())
      continue;
    if (std::string added = bytes.of(id); !added.empty()) spelled.push_back({std::move(added), id});
  }
  std::sort(spelled.begin(), spelled.end());
  return spelled;
}

}  // namespace

TokenBytes::TokenBytes(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  for (TokenId id = 0; id < tokenizer.vocab_size() && before_bytes_ == 0; ++id) {
    if (tokenizer.is_special(id)) continue;
    before_ = {id};
    before_bytes_ = tokenizer.decode(before_).size();
  }
}

std::string TokenBytes::of(TokenId token) const {
  Tokens both = before_;
  both.push_back(token);
  return tokenizer_.decode(both).substr(before_bytes_);
}

TokenTrie::TokenTrie(const Tokenizer& tokenizer) {
  const std::vector<Spelled> spelled = spell_all(tokenizer);
  for (const Spelled& token : spelled) ids_.push_back(token.id);
  struct Range {
    size_t begin, end, depth;  // tokens that share their first bytes
  };
  std::vector<Range> ranges{{0, spelled.size(), 0}};
  nodes_.emplace_back();
  bytes_.push_back('\0');
  for (size_t node = 0; node < ranges.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    Entry entry;
    entry.first_token = static_cast<int32_t>(begin);
    while (begin < end && spelled[begin].bytes.size() == depth) ++begin;
    entry.tokens = static_cast<int32_t>(begin) - entry.first_token;
    entry.first_child = static_cast<int32_t>(ranges.size());
    while (begin < end) {
      const char byte = spelled[begin].bytes[depth];
      size_t next = begin;
      while (next < end && spelled[next].bytes[depth] == byte) ++next;
      ranges.push_back({begin, next, depth + 1});
      bytes_.push_back(byte);
      nodes_.emplace_back();
      begin = next;
    }
    entry.children = static_cast<int32_t>(ranges.size()) - entry.first_child;
    nodes_[node] = entry;
  }
  first_bytes_.fill(none);
  for (Node node = nodes_[0].first_child; node < nodes_[0].first_child + nodes_[0].children; ++node)
    first_bytes_[static_cast<unsigned char>(bytes_[static_cast<size_t>(node)])] = node;
}

TokenTrie::Node TokenTrie::child(Node node, char byte) const {
  if (node == none) return none;
  if (node == root) return first_bytes_[static_cast<unsigned char>(byte)];
  const Entry& entry = nodes_[static_cast<size_t>(node)];
  const auto first = bytes_.begin() + entry.first_child, end = first + entry.children;
  // As std::string orders them.
  const auto at = std::lower_bound(first, end, byte, [](char a, char b) {
    return static_cast<unsigned char>(a) < static_cast<unsigned char>(b);
  });
  return at == end || *at != byte ? none : static_cast<Node>(at - bytes_.begin());
}

std::span<const TokenId> TokenTrie::tokens(Node node) const {
  if (node == none) return {};
  const Entry& entry = nodes_[static_cast<size_t>(node)];
  return std::span(ids_).subspan(static_cast<size_t>(entry.first_token), static_cast<size_t>(entry.tokens));
}

}  // namespace sheaf

#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/token.h"
#include "core/tokenizer/tokenizer.h"

namespace sheaf {

/// What each token adds to a text.
class TokenBytes {
 public:
  explicit TokenBytes(const Tokenizer& tokenizer);

  std::string of(TokenId token) const;

 private:
  const Tokenizer& tokenizer_;
  // Some tokenizers leave out the space that a text begins with, so another token stands before.
  Tokens before_;
  size_t before_bytes_ = 0;
};

/// The bytes of all tokens but the special ones, as a trie: finds the tokens that a text begins with.
class TokenTrie {
 public:
  using Node = int32_t;
  static constexpr Node root = 0, none = -1;

  explicit TokenTrie(const Tokenizer& tokenizer);

  /// The node after one more byte; none where no token continues so, or `node` is none.
  Node child(Node node, char byte) const;
  /// The tokens that the bytes from the root to `node` spell; more than one where tokens are spelled alike.
  std::span<const TokenId> tokens(Node node) const;

 private:
  struct Entry {
    int32_t first_child = 0, children = 0;  ///< nodes, which lie side by side in the order of their bytes
    int32_t first_token = 0, tokens = 0;    ///< into ids_
  };
  std::vector<Entry> nodes_;
  std::string bytes_;  ///< per node, the last byte on the way to it
  Tokens ids_;
  std::array<Node, 256> first_bytes_{};  ///< the root's children, which are looked for most
};

}  // namespace sheaf

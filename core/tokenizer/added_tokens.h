#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tokenizer/tokenizer.h"

namespace sheaf {

/// A token that is looked for in the text before anything else.
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool special = true;  ///< only found where special tokens are parsed
  bool lstrip = false;  ///< takes the white space before it along
  bool rstrip = false;  ///< takes the white space after it along
};

/// Finds added tokens in text: the leftmost, of those the longest.
class AddedTokens {
 public:
  static constexpr size_t longest_content = 1024;

  /// A token of the same content replaces the earlier one. Empty contents are ignored; refuses an overlong
  /// one.
  void add(AddedToken token);
  bool empty() const { return tokens_.empty(); }

  /// Appends the tokens found in text[begin, end), left to right and disjoint; stripping may reach outside
  /// that range. Where `special` is false, special tokens are passed over.
  void find(std::string_view text, size_t begin, size_t end, bool special,
            std::vector<SpecialSpan>& out) const;

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  const AddedToken* find_content(std::string_view content) const;

 private:
  int32_t match(std::string_view text, size_t at, size_t end) const;

  std::vector<AddedToken> tokens_;
  std::array<bool, 256> starts_{};
  std::unordered_map<uint64_t, uint32_t> edges_;  // node << 8 | byte; node 0 is the root
  std::vector<int32_t> node_token_{-1};           // the token that ends at a node
};

}  // namespace sheaf

#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/text/pattern_set.h"
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
  /// Makes them ready for find(); call it after the last add().
  void link() { contents_.link(); }
  bool empty() const { return tokens_.empty(); }

  /// Appends the tokens found in text[begin, end), left to right and disjoint; stripping may reach outside
  /// that range. Where `special` is false, special tokens are passed over.
  void find(std::string_view text, size_t begin, size_t end, bool special,
            std::vector<SpecialSpan>& out) const;

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  const AddedToken* find_content(std::string_view content) const;

 private:
  std::vector<AddedToken> tokens_;  // by the number of their content in `contents_`
  PatternSet contents_;
};

}  // namespace sheaf

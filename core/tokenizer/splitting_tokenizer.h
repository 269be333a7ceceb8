#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/text/pattern_set.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/vocabulary.h"

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

  /// Appends the tokens found in text[begin, end), left to right and disjoint. Stripping may remove
  /// blanks before `begin` and after `end`. Where `special` is false, special tokens are passed over.
  void find(std::string_view text, size_t begin, size_t end, bool special,
            std::vector<SpecialSpan>& out) const;

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  const AddedToken* find_content(std::string_view content) const;

 private:
  std::vector<AddedToken> tokens_;  // by the number of their content in `contents_`
  PatternSet contents_;
};

/// A tokenizer that first looks for its added tokens and encodes the text between them: what the byte-level,
/// the character-level and the SentencePiece kinds have in common.
class SplittingTokenizer : public Tokenizer {
 public:
  void encode(std::string_view text, bool parse_special, Tokens& out) const override {
    encode_split(text, parse_special, Before::nothing, out);
  }
  std::string decode(std::span<const TokenId> ids, bool skip_special = true) const override;
  int32_t vocab_size() const override { return vocabulary_.size(); }
  std::optional<TokenId> find(std::string_view piece) const override;
  bool is_special(TokenId id) const override {
    return vocabulary_.holds(id) && special_[static_cast<size_t>(id)];
  }

  /// Adds eos and the known end-of-turn tokens to `end_tokens`, where they are special tokens of this
  /// vocabulary.
  void collect_end_tokens();

 protected:
  /// `space_in_front`: text gets a space in front, which decoding takes away again.
  SplittingTokenizer(Vocabulary vocabulary, AddedTokens added, bool space_in_front = false);

  /// Appends the ids of valid text that holds no special token to look for.
  virtual void encode_gap(std::string_view gap, Before before, Tokens& out) const = 0;

  void find_special(std::string_view text, size_t begin, size_t end,
                    std::vector<SpecialSpan>& out) const override {
    added_.find(text, begin, end, true, out);
  }
  void encode_run(std::string_view run, Before before, Tokens& out) const override {
    encode_split(run, false, before, out);
  }

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  void encode_split(std::string_view text, bool parse_special, Before before, Tokens& out) const;

  Vocabulary vocabulary_;
  AddedTokens added_;
  bool space_in_front_;
  std::vector<bool> special_;  // by id
};

}  // namespace sheaf

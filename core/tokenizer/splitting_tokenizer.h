#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/added_tokens.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/vocabulary.h"

namespace sheaf {

/// A tokenizer that first looks for its added tokens and encodes the text between them: what the byte-level,
/// the character-level and the SentencePiece kinds have in common.
class SplittingTokenizer : public Tokenizer {
 public:
  void encode(std::string_view text, bool parse_special, Tokens& out) const override;
  int32_t vocab_size() const override { return vocabulary_.size(); }
  std::optional<TokenId> find(std::string_view piece) const override;
  bool is_special(TokenId id) const override;

  /// Adds eos and the known end-of-turn tokens to `end_tokens`, where they are special tokens of this
  /// vocabulary.
  void collect_end_tokens();

 protected:
  SplittingTokenizer(Vocabulary vocabulary, AddedTokens added);

  /// Appends the ids of valid text that holds no special token to look for.
  virtual void encode_gap(std::string_view gap, Before before, Tokens& out) const = 0;

  void find_special(std::string_view text, size_t begin, size_t end,
                    std::vector<SpecialSpan>& out) const override;
  void encode_run(std::string_view run, Before before, Tokens& out) const override;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const AddedTokens& added() const { return added_; }

 private:
  void encode_split(std::string_view text, bool parse_special, Before before, Tokens& out) const;

  Vocabulary vocabulary_;
  AddedTokens added_;
  std::vector<bool> special_;  // by id
};

}  // namespace sheaf

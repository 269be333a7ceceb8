#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tokenizer/merges.h"
#include "core/tokenizer/splitting_tokenizer.h"
#include "core/tokenizer/word_cache.h"

namespace sheaf {

/// Everything a BPE tokenizer over characters is made of. SentencePiece writes a space as U+2581 and takes a
/// U+2581 in the text for a space; here both are a plain space throughout.
struct CharBpeParts {
  enum class Space : uint8_t { never, first, always };  ///< always: after special tokens, too

  Vocabulary vocabulary;  ///< the bytes of every token; after `tokens`, characters that only occur in merges
  int32_t tokens = 0;     ///< ids of the model
  Merges merges;
  AddedTokens added;
  Space space_in_front = Space::always;
  bool space_before_space = true;                     ///< the space in front is put even before a space
  bool cut_at_spaces = false;                         ///< merges never cross the start of a space
  std::array<TokenId, 256> byte_tokens = no_bytes();  ///< for characters without a token; -1: none
  std::optional<TokenId> unknown;  ///< for characters that have no byte tokens either; nothing: dropped
  bool fuse_unknown = true;
  std::string name;

  static constexpr std::array<TokenId, 256> no_bytes() {
    std::array<TokenId, 256> none{};
    none.fill(-1);
    return none;
  }
};

/// The text with every U+2581 turned into a space.
std::string spaces_from_blocks(std::string_view text);
/// The byte that "<0x41>" stands for, or -1.
int byte_of_spelling(std::string_view spelling);

/// A SentencePiece BPE model has scores instead of merges: any two neighbours whose text is a token merge,
/// the best score first. Fills `merges` (and adds the characters that only occur inside tokens) from the
/// findable tokens; `scores` has one entry per token. Refuses scores that are not numbers and tokens of
/// absurd length.
void merges_from_scores(CharBpeParts& parts, std::span<const float> scores, const std::string& source);

/// BPE over characters with byte fallback: Llama 2, Mistral, Phi-3.
class CharBpe final : public SplittingTokenizer {
 public:
  explicit CharBpe(CharBpeParts parts);

  std::optional<TokenId> find(std::string_view piece) const override;
  int32_t vocab_size() const override { return parts_.tokens; }
  std::string describe() const override;

 protected:
  void encode_gap(std::string_view gap, Before before, Tokens& out) const override;

 private:
  struct Scratch {
    WordCache cache;
    MergeScratch merge;
    Tokens symbols;
    std::string text;
  };
  size_t word_end(std::string_view text, size_t begin) const;
  void encode_word(std::string_view word, Scratch& scratch, Tokens& out) const;
  void push_bytes(std::string_view bytes, Tokens& out) const;

  CharBpeParts parts_;  // without the vocabulary and added tokens, which the base has
  std::array<TokenId, 128> ascii_tokens_;
  bool cuts_ = true;  // unknown characters that fuse must stay together
  // [last byte of a character][first byte of the next] in some token.
  std::vector<bool> joined_ = std::vector<bool>(65536);
  mutable ScratchPool<Scratch> scratch_;
};

}  // namespace sheaf

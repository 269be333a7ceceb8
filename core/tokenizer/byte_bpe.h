#pragma once
#include <array>
#include <string>

#include "core/tokenizer/merges.h"
#include "core/tokenizer/pretokenize.h"
#include "core/tokenizer/splitting_tokenizer.h"
#include "core/tokenizer/word_cache.h"

namespace sheaf {

/// Everything a byte-level BPE tokenizer is made of.
struct ByteBpeParts {
  Vocabulary vocabulary;  ///< the real bytes of every token
  Merges merges;
  PreTokenizer words;
  AddedTokens added;
  bool nfc = false;                ///< text is put into normalization form C
  bool space_in_front = false;     ///< a run of text that does not start with a space gets one
  bool whole_words_first = false;  ///< a word that is a token is that token, whatever the merges say
  std::optional<TokenId> unknown;  ///< stands for a byte without a token; nothing: such a byte is dropped
  bool fuse_unknown = false;       ///< neighbouring unknown bytes make one token
};

/// The byte a character of the byte-level alphabet stands for, or -1.
int byte_of_char(uint32_t point);
/// The bytes that a token's spelling in the byte-level alphabet stands for; nothing where it is not in that
/// alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

/// Byte-level BPE: GPT-2, Qwen, Llama 3, OLMo-2, SmolLM, ...
class ByteBpe final : public SplittingTokenizer {
 public:
  explicit ByteBpe(ByteBpeParts parts);

  std::string describe() const override;

 protected:
  void encode_gap(std::string_view gap, Before before, Tokens& out) const override;

 private:
  struct Scratch {
    WordCache cache;
    MergeScratch merge;
    std::vector<size_t> ends, spare;
    Tokens symbols;
    std::string normalized;
    std::string spaced;
  };
  void encode_word(std::string_view word, Scratch& scratch, Tokens& out) const;

  ByteBpeParts parts_;                    // without the vocabulary and added tokens, which the base has
  std::array<TokenId, 256> byte_tokens_;  // -1: the byte has no token
  mutable ScratchPool<Scratch> scratch_;
};

}  // namespace sheaf

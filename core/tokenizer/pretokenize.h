#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// A rule that cuts text into words; merges never cross a cut. Each is a hand-written scanner equal to the
/// pattern beside it (gaps between matches are words of their own).
enum class CutRule {
  gpt2,           ///< 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  cl100k,         ///< (?i:'s|…)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
                  ///< ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  qwen2,          ///< cl100k with \p{N} one at a time
  tekken,         ///< words also cut before capitals, \p{N} one at a time, [\r\n/]* after punctuation
  o200k,          ///< tekken with contractions kept on the word and \p{N}{1,3}
  digits_each,    ///< the Digits pre-tokenizer, each digit alone
  digits_run,     ///< the Digits pre-tokenizer, runs of digits
  number_each,    ///< \p{N}
  number_run,     ///< \p{N}+
  ascii_triples,  ///< [0-9][0-9][0-9]
  punct,          ///< [\p{P}\$\+<=>\^~\|]+
  punct_falcon,   ///< [\p{P}\$\+<=>\^~\|`]+
};

/// Cuts text by one rule after the other, each within the words of the one before.
struct PreTokenizer {
  std::string name;
  std::vector<CutRule> rules;  ///< none: the text is one word

  /// Fills `ends` with where each word of `text` (valid UTF-8) ends; `spare` is working space.
  void split(std::string_view text, std::vector<size_t>& ends, std::vector<size_t>& spare) const;
};

/// The rule for a tokenizer.json Split pattern; refuses an unknown one, naming `source` and listing the
/// known.
CutRule rule_of_regex(std::string_view regex, std::string_view source);

/// What a GGUF file's `tokenizer.ggml.pre` stands for.
struct GgufPre {
  PreTokenizer words;
  bool whole_words_first = false;  ///< a word that is a token is that token, whatever the merges say
  bool nfc = false;                ///< the family's own tokenizer normalizes text
};
GgufPre pre_of_gguf(std::string_view pre, std::string_view source);

}  // namespace sheaf

#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sheaf {

/// Classes of a code point, as the Hugging Face `tokenizers` package sees them.
struct CharClass {
  enum Flag : uint8_t {
    is_letter = 1,   ///< \p{L}
    is_number = 2,   ///< \p{N}
    is_space = 4,    ///< \s
    is_upper = 8,    ///< \p{Lu} or \p{Lt}
    is_lower = 16,   ///< \p{Ll}
    is_mark = 32,    ///< \p{M}
    is_punct = 64,   ///< \p{P}
    is_digit = 128,  ///< what the Digits pre-tokenizer isolates (a newer Unicode than \p{N})
  };
};

/// [0x110000] the class bits of every code point.
const uint8_t* char_classes();

/// Whether a word continues from one character to the next: both are letters, or both are digits, or the next
/// one is a mark. Letters of scripts without spaces (Han, Kana, Thai, Lao, Khmer, Myanmar) are words each.
bool joins_word(uint32_t before, uint32_t after);

/// Whether a word of the valid UTF-8 `text` begins or ends before byte `at`, where a character begins or the
/// text ends. An emoji of several characters is not taken apart.
bool splits_words(std::string_view text, size_t at);

/// Whether the character is a space of any kind.
bool is_space_character(uint32_t point);

/// `text` (valid UTF-8) in Unicode normalization form C: itself where it is already, otherwise a copy in
/// `storage`.
std::string_view normalize_nfc(std::string_view text, std::string& storage);

/// `text` (valid UTF-8) in form D: characters with marks taken apart, the marks in their order.
std::string normalize_nfd(std::string_view text);

}  // namespace sheaf

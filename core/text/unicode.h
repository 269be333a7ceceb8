#pragma once
#include <cstdint>

namespace sheaf {

/// Classes of a code point, as the Hugging Face `tokenizers` package sees them.
enum CharClass : uint8_t {
  is_letter = 1,   ///< \p{L}
  is_number = 2,   ///< \p{N}
  is_space = 4,    ///< \s
  is_upper = 8,    ///< \p{Lu} or \p{Lt}
  is_lower = 16,   ///< \p{Ll}
  is_mark = 32,    ///< \p{M}
  is_punct = 64,   ///< \p{P}
  is_digit = 128,  ///< what the Digits pre-tokenizer isolates (a newer Unicode than \p{N})
};

/// [0x110000] the class bits of every code point.
const uint8_t* char_classes();

}  // namespace sheaf

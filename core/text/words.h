#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sheaf {

/// Whether a word goes on from one character to the next: both are letters, or both are digits, or the next
/// one is a mark. Letters of scripts without spaces (Han, Kana, Thai, Lao, Khmer, Myanmar) are words each.
bool joins_word(uint32_t before, uint32_t after);

/// Whether a word of the valid UTF-8 `text` begins or ends before byte `at`, where a character begins or the
/// text ends.
bool splits_words(std::string_view text, size_t at);

/// Whether the character is a space of any kind.
bool is_space_character(uint32_t point);

}  // namespace sheaf

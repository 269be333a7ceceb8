#pragma once
#include <array>
#include <string>
#include <string_view>

namespace sheaf {

/// Per byte: what it is in a word, in small letters; 0: it stands between words. What is not ASCII counts as
/// letters.
constexpr std::array<char, 256> kWordBytes = [] {
  std::array<char, 256> bytes{};
  for (int c = 0; c < 256; ++c) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper || c >= 0x80 || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      bytes[static_cast<size_t>(c)] = static_cast<char>(upper ? c + ('a' - 'A') : c);
  }
  return bytes;
}();

/// Calls take(std::string_view) with each word of a text: runs of letters and digits, in small letters.
template <class Take>
void each_word(std::string_view text, Take&& take) {
  std::string word;
  for (const char c : text) {
    if (const char letter = kWordBytes[static_cast<unsigned char>(c)]) {
      word += letter;
    } else if (!word.empty()) {
      take(std::string_view(word));
      word.clear();
    }
  }
  if (!word.empty()) take(std::string_view(word));
}

}  // namespace sheaf

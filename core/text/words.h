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
  const auto letter = [&](size_t at) { return kWordBytes[static_cast<unsigned char>(text[at])]; };
  std::string word;  // where the text has capitals
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    bool small = true;
    for (; at < text.size() && letter(at) != 0; ++at) small &= letter(at) == text[at];
    if (at == begin) {
      ++at;
    } else if (small) {
      take(text.substr(begin, at - begin));
    } else {
      word.clear();
      for (size_t i = begin; i < at; ++i) word += letter(i);
      take(std::string_view(word));
    }
  }
}

}  // namespace sheaf

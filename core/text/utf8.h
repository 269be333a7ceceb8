#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sheaf {

struct Decoded {
  uint32_t point;
  uint32_t bytes;  ///< 1 to 4
};

/// The code point at `p`, which must start a valid sequence.
inline Decoded decode_valid(const char* p) {
  const auto byte = [p](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(p[i])); };
  const uint32_t b = byte(0);
  if (b < 0x80) return {b, 1};
  if (b < 0xE0) return {(b & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (b < 0xF0) return {(b & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(b & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

/// Bytes of the sequence that a valid lead byte opens.
inline uint32_t sequence_bytes(char lead) {
  const auto b = static_cast<unsigned char>(lead);
  return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

/// An ASCII capital as its small letter; any other byte as it is.
constexpr char small_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

std::string small_letters(std::string text);

/// Whether a byte belongs to a character that began before it.
inline bool inside_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

/// Where the character that ends before byte `at` begins.
inline size_t character_before(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && inside_character(text[at]));
  return at;
}

/// Code points of valid text, which is also how wide it is on a terminal.
size_t count_characters(std::string_view text);

void append_utf8(uint32_t point, std::string& out);

/// Bytes of the longest valid prefix; text.size() when all of it is valid.
size_t valid_prefix(std::string_view text);

/// The text with each maximal invalid part of a sequence replaced by U+FFFD, as Python's errors="replace"
/// does.
std::string valid_utf8(std::string_view text);

}  // namespace sheaf

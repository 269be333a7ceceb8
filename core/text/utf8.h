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

void append_utf8(uint32_t point, std::string& out);

/// Bytes of the longest valid prefix; text.size() when all of it is valid.
size_t valid_prefix(std::string_view text);

/// The text with each maximal invalid part of a sequence replaced by U+FFFD, as Python's errors="replace"
/// does.
std::string replace_invalid(std::string_view text);

/// `text` itself where it is valid, otherwise its repaired copy in `storage`.
std::string_view valid_text(std::string_view text, std::string& storage);

}  // namespace sheaf

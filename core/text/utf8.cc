#include "core/text/utf8.h"

#include <algorithm>
#include <cstring>

namespace sheaf {
namespace {

struct Sequence {
  size_t bytes;  // of the valid sequence, or of the maximal invalid part
  bool valid;
};

Sequence read_sequence(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte rules out overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (at + i >= text.size()) return {i, false};
    const unsigned char b = byte(at + i);
    if (i == 1 ? b < low || b > high : b < 0x80 || b > 0xBF) return {i, false};
  }
  return {length, true};
}

}  // namespace

std::string small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), small_letter);
  return text;
}

size_t count_characters(std::string_view text) {
  return text.size() - static_cast<size_t>(std::ranges::count_if(text, inside_character));
}

void append_utf8(uint32_t point, std::string& out) {
  const auto put = [&out](uint32_t b) { out.push_back(static_cast<char>(b)); };
  if (point < 0x80) return put(point);
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;  // bytes after the first
  constexpr uint32_t leads[] = {0, 0xC0, 0xE0, 0xF0};
  put(leads[more] | point >> 6 * more);
  for (int i = more; i-- > 0;) put(0x80 | (point >> 6 * i & 0x3F));
}

size_t valid_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    while (at + 8 <= text.size()) {
      uint64_t word;
      std::memcpy(&word, text.data() + at, 8);
      if (word & 0x8080808080808080u) break;
      at += 8;
    }
    if (at == text.size()) break;
    const Sequence sequence = read_sequence(text, at);
    if (!sequence.valid) return at;
    at += sequence.bytes;
  }
  return at;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  size_t at = 0;
  while (at < text.size()) {
    const size_t good = valid_prefix(text.substr(at));
    out.append(text.substr(at, good));
    at += good;
    if (at == text.size()) break;
    out.append("\xEF\xBF\xBD");
    at += read_sequence(text, at).bytes;
  }
  return out;
}

}  // namespace sheaf

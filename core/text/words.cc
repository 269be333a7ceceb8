#include "core/text/words.h"

#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

bool written_without_spaces(uint32_t c) {
  return (c >= 0x0E00 && c <= 0x0EFF) || (c >= 0x1000 && c <= 0x109F) || (c >= 0x1780 && c <= 0x17FF) ||
         (c >= 0x2E80 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFF66 && c <= 0xFF9F) ||
         (c >= 0x20000 && c <= 0x3FFFF);
}

}  // namespace

bool joins_word(uint32_t before, uint32_t after) {
  const uint8_t a = char_classes()[before], b = char_classes()[after];
  if (b & CharClass::is_mark) return true;
  if ((a & CharClass::is_number) && (b & CharClass::is_number)) return true;
  const bool letters = (a & (CharClass::is_letter | CharClass::is_mark)) && (b & CharClass::is_letter);
  return letters && !written_without_spaces(before) && !written_without_spaces(after);
}

bool splits_words(std::string_view text, size_t at) {
  if (at == 0 || at == text.size()) return true;
  size_t before = at - 1;
  while ((static_cast<unsigned char>(text[before]) & 0xC0) == 0x80) --before;
  return !joins_word(decode_valid(text.data() + before).point, decode_valid(text.data() + at).point);
}

bool is_space_character(uint32_t point) {
  return char_classes()[point] & CharClass::is_space;
}

}  // namespace sheaf

#include "core/text/unicode.h"

#include <iterator>
#include <vector>

#include "core/text/utf8.h"

namespace sheaf {
namespace {

struct ClassRun {
  uint32_t first;  // the run ends where the next begins
  uint8_t flags;
};

#include "core/text/unicode_classes.inc"

std::vector<uint8_t> expand() {
  std::vector<uint8_t> table(0x110000);
  constexpr size_t runs = std::size(class_runs);
  for (size_t i = 0; i < runs; ++i) {
    const uint32_t end = i + 1 < runs ? class_runs[i + 1].first : 0x110000;
    for (uint32_t c = class_runs[i].first; c < end; ++c) table[c] = class_runs[i].flags;
  }
  return table;
}

bool written_without_spaces(uint32_t c) {
  return (c >= 0x0E00 && c <= 0x0EFF) || (c >= 0x1000 && c <= 0x109F) || (c >= 0x1780 && c <= 0x17FF) ||
         (c >= 0x2E80 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFF66 && c <= 0xFF9F) ||
         (c >= 0x20000 && c <= 0x3FFFF);
}

}  // namespace

const uint8_t* char_classes() {
  static const std::vector<uint8_t> table = expand();
  return table.data();
}

bool joins_word(uint32_t before, uint32_t after) {
  const uint8_t a = char_classes()[before], b = char_classes()[after];
  if (b & CharClass::is_mark) return true;
  if ((a & CharClass::is_number) && (b & CharClass::is_number)) return true;
  const bool letters = (a & (CharClass::is_letter | CharClass::is_mark)) && (b & CharClass::is_letter);
  return letters && !written_without_spaces(before) && !written_without_spaces(after);
}

namespace {

/// Whether two characters next to each other are parts of one picture: an emoji and its skin or its tags, or
/// what joiners of width zero hold together.
bool joins_picture(uint32_t before, uint32_t after) {
  const auto joiner = [](uint32_t c) { return c == 0x200C || c == 0x200D; };
  if ((after >= 0x1F3FB && after <= 0x1F3FF) || (after >= 0xE0020 && after <= 0xE007F)) return before > 0x20;
  return (joiner(after) && !is_space_character(before) && before > 0x20) ||
         (joiner(before) && !is_space_character(after) && after > 0x20);
}

bool is_flag_letter(uint32_t c) {
  return c >= 0x1F1E6 && c <= 0x1F1FF;
}

/// Whether a flag, which two letters of its own make, begins before byte `at` and ends behind it.
bool inside_flag(std::string_view text, size_t at) {
  if (!is_flag_letter(decode_valid(&text[at]).point)) return false;
  constexpr size_t kBytes = 4;          // of a letter
  constexpr size_t kMostLetters = 256;  // the most letters of a row of flags that are looked at
  size_t letters = 0;
  for (size_t begin = at; letters < kMostLetters && begin >= kBytes; begin -= kBytes) {
    const bool whole = static_cast<unsigned char>(text[begin - kBytes]) == 0xF0;
    if (!whole || !is_flag_letter(decode_valid(&text[begin - kBytes]).point)) break;
    ++letters;
  }
  return letters % 2 == 1;
}

}  // namespace

bool splits_words(std::string_view text, size_t at) {
  if (at == 0 || at == text.size()) return true;
  const uint32_t before = decode_valid(&text[character_before(text, at)]).point,
                 after = decode_valid(&text[at]).point;
  return !joins_word(before, after) && !joins_picture(before, after) && !inside_flag(text, at);
}

bool is_space_character(uint32_t point) {
  return char_classes()[point] & CharClass::is_space;
}

}  // namespace sheaf

#include "core/text/unicode.h"

#include <cstddef>
#include <iterator>
#include <vector>

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

}  // namespace

const uint8_t* char_classes() {
  static const std::vector<uint8_t> table = expand();
  return table.data();
}

}  // namespace sheaf

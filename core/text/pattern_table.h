#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/text/pattern.h"

namespace sheaf {

/// A pattern as an automaton over the letters 0x20 to 0x7e, to write a text under it letter by letter. From
/// every state letters lead to a text that matches.
struct PatternTable {
  static constexpr int kLetters = 0x7f - 0x20;
  static constexpr int16_t kNowhere = -1;

  std::vector<std::array<int16_t, kLetters>> next;  ///< by state and letter; the first state is the start
  std::vector<bool> accepts;                        ///< whether the text may end here

  int16_t after(int16_t state, char letter) const {
    const bool known = letter >= 0x20 && letter < 0x7f;
    return known ? next[static_cast<size_t>(state)][static_cast<size_t>(letter - 0x20)] : kNowhere;
  }
};

/// Texts with a letter of `without` are left out. Nothing where other letters may match too (., [^a], é),
/// where no text is left, or where the automaton is large.
std::optional<PatternTable> make_pattern_table(const Pattern& pattern, std::string_view without);

}  // namespace sheaf

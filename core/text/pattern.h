#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sheaf {

/// A regular expression that a whole text matches or not, in time linear in the text whatever both hold.
/// Characters, `.`, classes `[a-z]` `[^0-9]` `\d` `\w` `\s` (and `\D` `\W` `\S`), groups, `|`, and `* + ? {2}
/// {2,} {2,5}`. `^` at the beginning and `$` at the end say what holds anyway. No references, no looking
/// around.
class Pattern {
 public:
  /// Refuses what it cannot do, with the place in the expression.
  explicit Pattern(std::string_view expression);

  const std::string& text() const { return text_; }
  /// `text`: UTF-8.
  bool matches(std::string_view text) const;

 private:
  friend class PatternReader;
  friend class PatternTableMaker;
  using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;  ///< of characters, both ends included
  struct Step {
    enum class Kind : uint8_t { one_of, none_of, fork, go, done };
    Kind kind;
    Ranges ranges = {};          ///< one_of, none_of
    size_t to = 0, or_else = 0;  ///< fork: both; go: the first
  };

  struct Walk {
    std::vector<size_t> seen;  ///< by step: the mark of the walk that saw it last
    std::vector<size_t> open = {};
  };
  /// Appends the steps that wait for a character, or are the end, reached from `from` without one. Each is
  /// found once under one mark.
  void reach(size_t from, size_t mark, Walk& walk, std::vector<size_t>& found) const;

  std::string text_;
  std::vector<Step> steps_;
};

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

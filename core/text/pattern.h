#pragma once
#include <cstdint>
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

  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace sheaf

#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "core/text/locale.h"

namespace sheaf {

/// The number that a text gives.
struct NumberText {
  enum class Trouble { none, no_number, unclear, several, other_unit, no_locale };
  std::optional<double> value;  ///< only without trouble
  Trouble trouble = Trouble::none;
};

/// Reads the one number of a text where it is certain which: "12 oz" is 12, "−5 °C" -5, "1,200.5" and "1
/// 200,5" 1200.5, "1½" and "1 1/2 cups" 1.5, "2.5 million" and "2,5 Mio." 2500000, "-,50" 0.5. Unclear:
/// "12:30", "0x1F", ">5", "up to 5", "1.2.3", and "3 billion" where a comma is decimal. Whether "1.200" and
/// "1,200" have thousands, and whether "1,5" is a number, the locale says; without one they are unclear. With
/// a `unit`, the number has this unit ("EUR" is also "€" and "Euro", "m²" also "m2" and "qm") or none; if
/// exactly one of several has this unit, it is used. Numbers that are part of a word ("SPF30") count only
/// where no other stands in the text.
NumberText read_number_text(std::string_view text, std::string_view unit = {}, const Locale& locale = {});

/// Every number of a text that is certain in some locale, with what multiplies it: fractions, "million".
std::vector<double> numbers_in(std::string_view text);

}  // namespace sheaf

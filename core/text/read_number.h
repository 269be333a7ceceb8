#pragma once
#include <optional>
#include <string_view>

namespace sheaf {

/// The number that a text gives.
struct NumberText {
  enum class Trouble { none, no_number, unclear, several, other_unit };
  std::optional<double> value;  ///< only without trouble
  Trouble trouble = Trouble::none;
};

/// Reads the one number of a text where it is certain which: "12 oz" is 12, "−5 °C" -5, "1,200.5" and "1
/// 200,5" 1200.5, "1½" and "1 1/2 cups" 1.5, "2.5 million" 2500000. Unclear: "1,5", "12:30", "0x1F", ">5",
/// "1.2.3". With a `unit`, the number has this unit or none, and of several numbers the only one with this
/// unit counts. Numbers that are part of a word ("SPF30") count only where no other stands in the text.
NumberText read_number_text(std::string_view text, std::string_view unit = {});

}  // namespace sheaf

#pragma once
#include <string>
#include <string_view>

#include "core/text/locale.h"

namespace sheaf {

/// The date that a text gives.
struct DateText {
  enum class Trouble { none, no_date, unclear };
  std::string value;  ///< "2026-03-01"; only without trouble
  Trouble trouble = Trouble::none;
};

/// Reads a text that is a date: "2026-03-01" (what follows as a time of day is left out), "2026/3/1",
/// "1.3.2026", "1 March 2026", "March 1st, 2026", "1-Mar-2026", "1. März 2026", "1 de marzo de 2026". A day
/// of the week may stand before it, and a time of day after it: "Sunday, 1 March 2026, 14:30". "03/04/2026",
/// where either number may be the month, the locale decides; without one it is unclear, as are years of two
/// digits. A day that the calendar lacks is no date, nor is a month alone.
DateText read_date_text(std::string_view text, const Locale& locale = {});

/// How many bytes of a space that does not break a line, or a thin one, `text` begins with; 0: none.
size_t special_space(std::string_view text);

}  // namespace sheaf

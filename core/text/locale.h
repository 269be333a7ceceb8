#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sheaf {

/// How people of a language and country write numbers and dates.
struct Locale {
  enum class Decimal : uint8_t { unknown, point, comma };
  enum class Dates : uint8_t { unknown, day_first, month_first };  ///< of dates such as 03/04/2026
  Decimal decimal = Decimal::unknown;
  Dates dates = Dates::unknown;

  bool operator==(const Locale&) const = default;
};

/// The locale that "de", "de-CH" or "en_US" names; nothing where the language is not known.
std::optional<Locale> find_locale(std::string_view name);

/// What find_locale() knows, for a message.
std::string known_locales();

}  // namespace sheaf

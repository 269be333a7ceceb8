#pragma once
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <fmt/ranges.h>
#include <limits>

#include "core/text/spelling.h"

namespace sheaf {

// Checks of an option's value. CLI11's own let "nan" through and say little. The description says what is
// wanted (ArgumentFacts::wanted).

/// "; write 5000000" for 5m, 5,000,000 and 5_000_000; empty for what is no such number.
inline std::string in_digits(const std::string& text) {
  std::string digits;
  for (const char c : text)
    if (c != ',' && c != '_') digits += c;
  const size_t letter = digits.find_first_not_of("0123456789");
  if (letter == 0 || digits.size() > 12) return {};
  if (letter == std::string::npos) return digits == text ? "" : "; write " + digits;
  const std::string unit = digits.substr(letter);
  const char* const zeros = unit == "k" || unit == "K"   ? "000"
                            : unit == "m" || unit == "M" ? "000000"
                                                         : nullptr;
  return zeros ? "; write " + digits.substr(0, letter) + zeros : std::string();
}

/// A whole number of the option's own type.
template <class Whole>
CLI::Validator whole_from(Whole least, Whole most = std::numeric_limits<Whole>::max()) {
  const std::string both = fmt::format("a whole number from {} to {}", least, most);
  const std::string wanted = most < INT32_MAX ? both : fmt::format("a whole number of at least {}", least);
  return {[=](std::string& text) {
            Whole value{};
            const bool wrapped =
                std::is_unsigned_v<Whole> && text.starts_with('-');  // CLI11 reads -1 as the largest
            if (!wrapped && CLI::detail::lexical_cast(text, value) && value >= least && value <= most)
              return std::string();
            const bool large = text.size() > 9 && text.find_first_not_of("0123456789") == std::string::npos;
            return fmt::format("must be {}; got {}{}", large ? both : wanted, shorten_text(text, 60),
                               in_digits(text));
          },
          wanted};
}

inline CLI::Validator number_from(double least, double most) {
  const std::string wanted = fmt::format("a number from {} to {}", least, most);
  return {[=](std::string& text) {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most)
              return std::string();
            return fmt::format("must be {}; got {}", wanted, shorten_text(text, 60));
          },
          wanted};
}

/// One of the words; its description, "{a,b}", is where completion finds them.
inline CLI::Validator one_of(const std::vector<std::string>& words) {
  return {[=](std::string& text) {
            return std::ranges::find(words, text) != words.end()
                       ? std::string()
                       : fmt::format("unknown value \"{}\"{}", shorten_text(text, 60),
                                     suggest_spelling(text, words));
          },
          fmt::format("{{{}}}", fmt::join(words, ","))};
}

}  // namespace sheaf

#pragma once
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <fmt/ranges.h>

#include "core/text/spelling.h"

namespace sheaf {

// Checks of an option's value. CLI11's own let "nan" through, and where there is no bound above they print
// the largest number with its 309 digits.

inline CLI::Validator whole_from(int64_t least, int64_t most = INT64_MAX) {
  const bool bounded = most != INT64_MAX;
  return {[=](std::string& text) {
            int64_t value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most)
              return std::string();
            return bounded ? fmt::format("must be a whole number from {} to {}; got {}", least, most, text)
                           : fmt::format("must be a whole number of at least {}; got {}", least, text);
          },
          bounded ? fmt::format("{} to {}", least, most) : fmt::format("{} or more", least)};
}

inline CLI::Validator number_from(double least, double most) {
  return {[=](std::string& text) {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most)
              return std::string();
            return fmt::format("must be a number from {} to {}; got {}", least, most, text);
          },
          fmt::format("{} to {}", least, most)};
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

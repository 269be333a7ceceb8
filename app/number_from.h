#pragma once
#include <CLI/CLI.hpp>
#include <cmath>
#include <fmt/format.h>

namespace sheaf {

/// Checks that an option's value is a number in a range. (CLI11's own checks let "nan" through, and where
/// there is no bound above they print the largest number with its 309 digits.)
inline CLI::Validator number_from(double least, double most = INFINITY) {
  const bool bounded = std::isfinite(most);
  return {[=](std::string& text) {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most)
              return std::string();
            return bounded ? fmt::format("must be a number from {} to {}; got {}", least, most, text)
                           : fmt::format("must be a number of at least {}; got {}", least, text);
          },
          bounded ? fmt::format("{} to {}", least, most) : fmt::format("{} or more", least)};
}

}  // namespace sheaf

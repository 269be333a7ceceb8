#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace sheaf {

/// What people said of two runs, whose names they did not know.
struct Preference {
  int64_t first = 0, second = 0;  ///< items of which this run alone is right, or is the better one
  int64_t both = 0, neither = 0;  ///< ties

  int64_t judged() const { return first + second + both + neither; }
  int64_t ties() const { return both + neither; }
  /// The sign test over the items that are no ties.
  double p_value() const;
};

nlohmann::ordered_json preference_json(const Preference& said, const std::string& first,
                                       const std::string& second);
/// A table for people.
std::string preference_text(const Preference& said, const std::string& first, const std::string& second);

}  // namespace sheaf

#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/task/schema.h"

namespace sheaf {

/// Attributes that gold answers name and their category does not have: typos, as a rule.
class UnknownNames {
 public:
  /// `gold`: attribute to anything.
  void add(const Category& category, const nlohmann::json& gold);
  /// What to tell the user of the answers of `path`; empty where every name is known.
  std::string notice(const std::string& path) const;

 private:
  int64_t values_ = 0;
  std::vector<std::string> first_;  ///< as they are shown
  bool more_ = false;
};

}  // namespace sheaf

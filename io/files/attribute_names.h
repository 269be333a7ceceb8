#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "io/files/metric_items.h"

namespace sheaf {

/// Attributes by name, of the gold answers and of the rows that they judge. A field of objects is
/// "variants.price", and only compared where both sides have such objects.
class AttributeNames {
 public:
  void add(const nlohmann::json& extra, const nlohmann::json& row);
  /// Adds the names that only one side has to what was joined. `all`: attributes of all rows.
  void compare(const std::set<std::string>& all, MetricItems& joined) const;

 private:
  std::map<std::string, std::string> gold_, rows_;  ///< each name with that of the object around it
  std::set<std::string> gold_objects_, row_objects_;
};

}  // namespace sheaf

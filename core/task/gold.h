#pragma once
#include <nlohmann/json_fwd.hpp>

#include "core/task/record.h"

namespace sheaf {

/// A text as it is; anything else as JSON.
std::string gold_text(const nlohmann::json& gold);

/// A gold value as the model should write it, a JSON literal of the attribute's type. `gold`: a value, null,
/// or a list: of the parts of a list attribute, else of accepted values, of which the first counts; "n/a"
/// and empty text are null. Nothing where the attribute's type does not hold the value.
std::optional<std::string> write_value(const Attribute& attribute, const nlohmann::json& gold);

/// Makes the values of spans those that decoding can copy: as the document writes them. One that it does not
/// hold is erased from `gold`, {attribute: value or list}. Returns how many were.
int64_t bind_gold(const Category& category, const Record& record, nlohmann::json& gold);

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

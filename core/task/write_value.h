#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/task/schema.h"

namespace sheaf {

/// A text as it is; anything else as JSON.
std::string gold_text(const nlohmann::json& gold);

/// A gold value as the model should write it, a JSON literal of the attribute's type. `gold`: a value, null,
/// or a list: of the parts of a list attribute, else of accepted values, of which the first counts; "n/a" is
/// null. Nothing where the attribute's type does not hold the value.
std::optional<std::string> write_value(const Attribute& attribute, const nlohmann::json& gold);

}  // namespace sheaf

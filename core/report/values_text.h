#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/task/row.h"

namespace sheaf {

/// A value as people read it: lists with commas, numbers as digits, null as JSON's null.
nlohmann::ordered_json value_for_people(const RowValue& value);

/// The value of an answer as people read it; of multiple choice with the option's text: "B) Lima".
nlohmann::ordered_json answer_for_people(const RowAnswer& answer);

/// A line for each value, with its note; objects and lists of objects as YAML has them.
std::string values_text(const ExtractedValues& row);

}  // namespace sheaf

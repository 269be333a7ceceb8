#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/task/schema.h"

namespace sheaf {

/// What of some gold values is of another kind than its attribute: a text where there should be an object, an
/// object where there should be a text. "variants[1].box must be an object, not a text"; empty: nothing. Null
/// and an empty list are of every kind, and an object alone is a list of one.
std::string gold_kind_trouble(const std::vector<Attribute>& attributes, const nlohmann::json& gold);

/// What to say of a value that is of another kind.
std::string wrong_kind(const std::string& path, const char* wanted, const nlohmann::json& value);

constexpr const char* kListKind = "a list of objects";
constexpr const char* kObjectKind = "an object";
constexpr const char* kPlainKind = "a plain value or a list of them";

}  // namespace sheaf

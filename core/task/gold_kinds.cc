#include "core/task/gold_kinds.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/task/value_path.h"

namespace sheaf {
namespace {

using nlohmann::json;

std::string trouble_in(const std::vector<Attribute>& attributes, const json& gold, const ValuePath& above);

std::string trouble_of(const Attribute& attribute, const json& value, ValuePath path) {
  if (value.is_null() || (value.is_array() && value.empty())) return {};
  const bool holds_objects =
      value.is_object() || (value.is_array() && std::ranges::any_of(value, &json::is_object));
  if (!attribute.nested())
    return holds_objects ? wrong_kind(path_text(path), kPlainKind, value) : std::string();
  if (attribute.type == ValueType::object)
    return value.is_object() ? trouble_in(attribute.fields, value, path)
                             : wrong_kind(path_text(path), kObjectKind, value);
  if (value.is_object()) return trouble_in(attribute.fields, value, path);
  if (!value.is_array() || !std::ranges::all_of(value, &json::is_object))
    return wrong_kind(path_text(path), kListKind, value);
  for (size_t i = 0; i < value.size(); ++i) {
    path.back().entry = static_cast<int32_t>(i);
    if (std::string trouble = trouble_in(attribute.fields, value[i], path); !trouble.empty()) return trouble;
  }
  return {};
}

std::string trouble_in(const std::vector<Attribute>& attributes, const json& gold, const ValuePath& above) {
  for (const Attribute& attribute : attributes) {
    const auto value = gold.find(attribute.name);
    if (value == gold.end()) continue;
    ValuePath path = above;
    path.push_back({attribute.name});
    if (std::string trouble = trouble_of(attribute, *value, std::move(path)); !trouble.empty())
      return trouble;
  }
  return {};
}

}  // namespace

std::string gold_kind_trouble(const std::vector<Attribute>& attributes, const json& gold) {
  return gold.is_object() ? trouble_in(attributes, gold, {}) : std::string();
}

std::string wrong_kind(const std::string& path, const char* wanted, const json& value) {
  const auto is_list = [](const json& each) { return each.is_array(); };
  const char* kind = value.is_object()                              ? "an object"
                     : value.is_string()                            ? "a text"
                     : value.is_number()                            ? "a number"
                     : value.is_boolean()                           ? "true or false"
                     : !value.is_array()                            ? "null"
                     : std::ranges::all_of(value, &json::is_object) ? "a list of objects"
                     : std::ranges::any_of(value, &json::is_object) ? "a list of objects and others"
                     : std::ranges::any_of(value, is_list)          ? "a list of lists"
                     : std::ranges::all_of(value, &json::is_string) ? "a list of texts"
                                                                    : "a list of plain values";
  return fmt::format("{} must be {}, not {}", path, wanted, kind);
}

}  // namespace sheaf

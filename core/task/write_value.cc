#include "core/task/write_value.h"

#include <algorithm>

#include "core/task/value.h"

namespace sheaf {
namespace {

using nlohmann::json;

bool is_absent(const json& gold) {
  return gold.is_null() || gold == "n/a";
}

std::string literal(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string list_literal(const json& gold) {
  std::string out = "[";
  for (const json& part : gold)
    if (!part.is_null()) out += (out.size() > 1 ? ", " : "") + literal(gold_text(part));
  return out + "]";
}

}  // namespace

std::string gold_text(const json& gold) {
  return gold.is_string() ? gold.get<std::string>() : gold.dump();
}

std::optional<std::string> write_value(const Attribute& attribute, const json& gold) {
  if (gold.is_object()) return std::nullopt;
  const json list = gold.is_array() ? gold : json::array({gold});
  if (list.empty()) return "null";
  const bool an_option =
      list.front().is_string() &&
      std::ranges::find(attribute.options, list.front().get<std::string>()) != attribute.options.end();
  if (is_absent(list.front()) && !an_option) return "null";
  if (attribute.type == ValueType::list) return list_literal(list);
  const std::string text = gold_text(list.front());
  if (attribute.type == ValueType::text || attribute.type == ValueType::span) return literal(text);
  const RowAnswer read = read_text_value(attribute, text);
  if (std::holds_alternative<std::nullptr_t>(read.value)) return std::nullopt;
  return std::visit([](const auto& value) { return literal(json(value)); }, read.value);
}

}  // namespace sheaf

#include "io/corpus/cells.h"

#include <cmath>

#include "core/text/utf8.h"

namespace sheaf {

using nlohmann::json;

std::string_view kind_of(const json& value) {
  return value.is_number()    ? "a number"
         : value.is_string()  ? "text"
         : value.is_boolean() ? "a boolean"
         : value.is_array()   ? "a list"
         : value.is_null()    ? "null"
                              : "an object";
}

const json& cell(const json& cells, std::string_view column) {
  const auto found = cells.find(column);
  if (found == cells.end()) reject("column \"{}\" is missing", column);
  return *found;
}

std::string text_of(const json& value, std::string_view what) {
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    reject("{} is not a finite number", what);
  if (value.is_number()) return value.dump();
  if (!value.is_string()) reject("{} is {}, not text", what, kind_of(value));
  const auto& text = value.get_ref<const std::string&>();
  if (const size_t good = valid_prefix(text); good < text.size())
    reject("{} is not valid UTF-8 at byte {}", what, good + 1);
  if (text.size() > kLongestDocument)
    reject("{} has {} bytes; at most {} are allowed", what, text.size(), kLongestDocument);
  return text;
}

bool blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

json id_of(const json& value, std::string_view what) {
  if (value.is_string()) return text_of(value, what);
  if (!value.is_number()) reject("{} is {}, not text or a number", what, kind_of(value));
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    reject("{} is not a finite number", what);
  if (value.is_number_float() && std::abs(value.get<double>()) >= 0x1p53)
    reject("{} has too many digits for a number; write it as text", what);
  return value;
}

const nlohmann::json& list_cell(const nlohmann::json& cells, std::string_view column, std::string_view things,
                                size_t most) {
  const nlohmann::json& list = cell(cells, column);
  if (!list.is_array()) reject("column \"{}\" is {}, not a list of {}", column, kind_of(list), things);
  if (list.empty()) reject("the record has no {}", things);
  if (list.size() > most) reject("the record has {} {}; at most {} are allowed", list.size(), things, most);
  return list;
}

}  // namespace sheaf

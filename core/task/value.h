#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/task/schema.h"

namespace sheaf {

/// A value as it goes into a row: of its attribute's type, or null; `note` says what was wrong, if anything.
struct Value {
  nlohmann::json json;
  std::string note;
};

/// Reads what the model wrote after `"Attribute":`, up to its newline: a JSON literal with a trailing comma
/// as a rule, anything at all as an exception. `cut`: the answer hit its length limit.
Value read_value(const Attribute& attribute, std::string_view text, bool cut);

/// Turns a JSON value (from a whole generated object) into one of the attribute's type.
Value coerce_value(const Attribute& attribute, const nlohmann::json& raw);

/// The object whose members the model wrote after a `{`, as far as it can be read: a cut or broken one loses
/// its last members only.
nlohmann::json read_object(std::string_view text);

/// A free-text answer: its first line; null where it is the word null or nothing.
Value read_line(std::string_view text, bool cut);

/// Whether a row's value or answer says something: not null and no empty list.
bool is_found(const nlohmann::ordered_json& value);

/// `text` with invalid UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace sheaf

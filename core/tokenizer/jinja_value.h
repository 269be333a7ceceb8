#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sheaf {

struct JinjaUndefined {};
struct JinjaNone {};
struct JinjaList;
struct JinjaMap;
struct JinjaSpace;

/// A value of a template: whatever is large is shared and never changes, but for a namespace's fields.
using JinjaValue = std::variant<JinjaUndefined, JinjaNone, bool, int64_t, std::shared_ptr<const std::string>,
                                std::shared_ptr<const JinjaList>, std::shared_ptr<const JinjaMap>,
                                std::shared_ptr<JinjaSpace>>;

// The depth of what they hold is bounded, so that comparing and freeing them cannot exhaust the stack.
struct JinjaList {
  std::vector<JinjaValue> items;
  int depth = 1;
};
struct JinjaMap {
  std::vector<std::pair<std::string, JinjaValue>> entries;
  int depth = 1;
  const JinjaValue* find(std::string_view key) const;
};
/// namespace(): the one thing that a loop can change for what comes after it. Holds no other namespace.
struct JinjaSpace {
  std::map<std::string, JinjaValue, std::less<>> fields;
};

JinjaValue jinja_text(std::string text);
/// These throw BadText where the value would nest too deep or hold a namespace.
JinjaValue jinja_list(std::vector<JinjaValue> items);
JinjaValue jinja_map(std::vector<std::pair<std::string, JinjaValue>> entries);

// Null where the value is something else.
const std::string* as_text(const JinjaValue& value);
const JinjaList* as_list(const JinjaValue& value);
const JinjaMap* as_map(const JinjaValue& value);
const int64_t* as_integer(const JinjaValue& value);

/// A number, or a boolean: true and 1 are equal, as in Python.
std::optional<int64_t> as_number(const JinjaValue& value);

bool is_undefined(const JinjaValue& value);
bool is_namespace(const JinjaValue& value);
/// Whether a condition holds, as in Python.
bool is_true(const JinjaValue& value);
/// "a text", "a list", for reasons.
const char* kind_name(const JinjaValue& value);

}  // namespace sheaf

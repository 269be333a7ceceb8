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

#include "core/base/error.h"

namespace sheaf {

struct JinjaUndefined {};
struct JinjaNone {};
struct JinjaList;
struct JinjaMap;
struct JinjaSpace;

using JinjaVariant = std::variant<JinjaUndefined, JinjaNone, bool, int64_t,
                                  std::shared_ptr<const std::string>, std::shared_ptr<const JinjaList>,
                                  std::shared_ptr<const JinjaMap>, std::shared_ptr<JinjaSpace>>;

/// A value of a template: whatever is large is shared and never changes, but for a namespace's fields.
struct JinjaValue : JinjaVariant {
  using JinjaVariant::JinjaVariant;

  // Null where the value is something else.
  const std::string* text() const { return shared<const std::string>(); }
  const JinjaList* list() const { return shared<const JinjaList>(); }
  const JinjaMap* map() const { return shared<const JinjaMap>(); }
  JinjaSpace* space() const { return shared<JinjaSpace>(); }
  const bool* boolean() const { return std::get_if<bool>(this); }
  const int64_t* integer() const { return std::get_if<int64_t>(this); }

  /// A number, or a boolean: true and 1 are equal, as in Python.
  std::optional<int64_t> number() const;
  bool is_undefined() const { return std::holds_alternative<JinjaUndefined>(*this); }
  bool is_none() const { return std::holds_alternative<JinjaNone>(*this); }
  /// Whether a condition holds, as in Python.
  bool is_true() const;
  /// "a text", "a list", for reasons.
  const char* kind_name() const;

 private:
  template <class T>
  T* shared() const {
    const auto* found = std::get_if<std::shared_ptr<T>>(this);
    return found ? found->get() : nullptr;
  }
};

// The depth of lists and maps in each other is bounded, so that comparing and freeing them cannot exhaust the
// stack.
struct JinjaList {
  std::vector<JinjaValue> items;
  int depth = 1;
};
struct JinjaMap {
  std::vector<std::pair<std::string, JinjaValue>> entries;
  int depth = 1;
  const JinjaValue* find(std::string_view key) const;
  /// Undefined where the key is not there.
  JinjaValue at(std::string_view key) const;
};
/// namespace(): the one thing that a loop can change for what comes after it. Holds no other namespace.
struct JinjaSpace {
  std::map<std::string, JinjaValue, std::less<>> fields;
};

JinjaValue jinja_text(std::string text);
/// jinja_list and jinja_map throw BadText where the value would nest too deep or hold a namespace.
JinjaValue jinja_list(std::vector<JinjaValue> items);
JinjaValue jinja_map(std::vector<std::pair<std::string, JinjaValue>> entries);

/// A statement or an expression of a template. `parts` are what it is made of, by kind.
struct JinjaNode {
  enum class Kind : uint8_t {
    // Statements.
    block,      ///< its parts one after the other
    text,       ///< value
    print,      ///< [expression]
    set,        ///< name = [expression]
    set_field,  ///< name.value = [expression]
    set_block,  ///< name = what [block] prints
    loop,       ///< for names in [list, block, condition or null, block for an empty list or null]
    branch,     ///< [condition, block, condition, block, …, block for else]
    nothing,    ///< a macro's definition
    // Expressions.
    constant,   ///< value
    name,       ///< name
    attribute,  ///< [object].name
    index,      ///< [object][key]
    slice,      ///< [object][from:to:step], each or null
    call,       ///< name(arguments…)
    method,     ///< [object].name(arguments…)
    filter,     ///< [object] | name(arguments…)
    test,       ///< [object] is name(arguments…)
    keyword,    ///< name=[expression], an argument
    negate,     ///< - [number]
    invert,     ///< not [condition]
    both,       ///< [a] and [b]
    either,     ///< [a] or [b]
    binary,     ///< [a] name [b]: + - * // % ~ == != < > <= >= in
    choice,     ///< [a] if [condition] else [b or null]
    list,       ///< items
    map,        ///< keys and values in turn
  };

  Kind kind = Kind::nothing;
  std::string name;
  std::vector<std::string> names;  ///< of a loop
  JinjaValue value;
  std::vector<std::unique_ptr<JinjaNode>> parts;
  int depth = 1;  ///< of the tree below, this node included
  int line = 0;
};

using JinjaNodePtr = std::unique_ptr<JinjaNode>;

/// The tree of a template. Its depth is bounded, and with it that of whoever walks it. Throws BadText.
JinjaNodePtr parse_jinja(std::string_view text);

struct JinjaToken {
  enum class Kind : uint8_t { text, open_print, open_block, close, name, string, integer, symbol, end };
  Kind kind = Kind::end;
  std::string text;  ///< of a string: without its quotes and escapes
  int64_t number = 0;
  int line = 1;
};

/// A template cut into text and what stands in its tags, without comments and without the white space that
/// tags take away. The last token is `end`. Throws BadText.
std::vector<JinjaToken> read_jinja_tokens(std::string_view text);

/// Throws BadText with the line.
template <class... Args>
[[noreturn]] void not_understood(int line, fmt::format_string<Args...> format, Args&&... args) {
  throw BadText(fmt::format("line {}: {}", line, fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace sheaf

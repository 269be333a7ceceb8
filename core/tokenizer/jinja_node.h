#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tokenizer/jinja_value.h"

namespace sheaf {

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

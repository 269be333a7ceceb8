#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace sheaf {

/// Without spaces and line breaks around it.
inline std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// Whether two texts differ at most in capital letters of A to Z.
inline bool same_letters(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

/// Calls `look` with the place of each character outside of strings, quotes that open one included, until it
/// returns false.
template <class Look>
void scan_unquoted(std::string_view text, Look&& look) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (!look(i)) return;
    quoted = c == '"';
  }
}

/// Calls `look` with the place and the depth of each character outside of strings, brackets with that of the
/// text around them.
template <class Look>
void scan_json(std::string_view text, Look&& look) {
  int64_t depth = 0;
  scan_unquoted(text, [&](size_t i) {
    const char c = text[i];
    if (c == ']' || c == '}') --depth;
    look(i, depth);
    if (c == '[' || c == '{') ++depth;
    return true;
  });
}

/// The parts of a well-formed list or object, without its brackets, between its outermost commas.
inline std::vector<std::string_view> parts_of(std::string_view inside) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  scan_json(inside, [&](size_t i, int64_t depth) {
    if (inside[i] != ',' || depth != 0) return;
    parts.push_back(inside.substr(begin, i - begin));
    begin = i + 1;
  });
  if (!trim(inside).empty()) parts.push_back(inside.substr(begin));
  return parts;
}

}  // namespace sheaf

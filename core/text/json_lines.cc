#include "core/text/json_lines.h"

#include <algorithm>

namespace sheaf {

using nlohmann::ordered_json;

JsonLines::JsonLines(std::string_view text, const ordered_json& root) : left_(text) {
  walk(root);
  left_ = {};
}

int32_t JsonLines::of(const ordered_json& value) const {
  const auto found = lines_.find(&value);
  return found == lines_.end() ? 0 : found->second;
}

void JsonLines::walk(const ordered_json& value) {
  skip_gap();
  lines_[&value] = line_;
  if (!value.is_structured()) {
    if (value.is_string())
      skip_text();
    else
      left_.remove_prefix(std::min(left_.size(), left_.find_first_of(",]} \t\r\n")));
    return;
  }
  left_.remove_prefix(std::min<size_t>(1, left_.size()));
  for (const auto& [key, inner] : value.items()) {
    if (value.is_array()) {
      walk(inner);
      continue;
    }
    skip_gap();
    const int32_t line = line_;
    skip_text();
    walk(inner);
    lines_[&inner] = line;
  }
  skip_gap();
  left_.remove_prefix(std::min<size_t>(1, left_.size()));
}

/// What stands between values: blanks, commas and colons, and a byte order mark.
void JsonLines::skip_gap() {
  const size_t end = std::min(left_.size(), left_.find_first_not_of(" \t\r\n,:\xef\xbb\xbf"));
  line_ += static_cast<int32_t>(std::ranges::count(left_.substr(0, end), '\n'));
  left_.remove_prefix(end);
}

void JsonLines::skip_text() {
  size_t end = 1;
  while (end < left_.size() && left_[end] != '"') end += left_[end] == '\\' ? 2 : 1;
  left_.remove_prefix(std::min(left_.size(), end + 1));
}

}  // namespace sheaf

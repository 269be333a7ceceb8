#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::test {

/// What is wrong with a page as XML: tags that do not match, attributes without quotes, bare ampersands.
/// Empty where nothing is. The text of <style> is not looked at.
inline std::string xml_fault(std::string_view page) {
  std::vector<std::string> open;
  for (size_t i = 0; i < page.size(); ++i) {
    const std::string_view rest = page.substr(i);
    if (rest[0] == '>') return "a bare > at " + std::to_string(i);
    if (rest[0] == '&') {
      const size_t end = rest.substr(0, 10).find(';');
      if (end == std::string_view::npos || rest.substr(0, end).find(' ') != std::string_view::npos)
        return "a bare & at " + std::to_string(i);
    }
    if (rest[0] != '<') continue;
    if (rest.starts_with("<!DOCTYPE")) {
      i += rest.find('>');
      continue;
    }
    size_t end = 1;
    for (bool quoted = false; end < rest.size() && (quoted || rest[end] != '>'); ++end) {
      if (rest[end] == '"') quoted = !quoted;
      if (rest[end] == '<') return "a < inside a tag at " + std::to_string(i);
    }
    if (end == rest.size()) return "a tag without an end at " + std::to_string(i);
    const std::string_view tag = rest.substr(1, end - 1);
    i += end;
    if (tag.starts_with("/")) {
      if (open.empty() || open.back() != tag.substr(1))
        return "</" + std::string(tag.substr(1)) + "> closes nothing";
      open.pop_back();
      continue;
    }
    for (size_t at = tag.find('='); at != std::string_view::npos; at = tag.find('=', tag.find('"', at + 2)))
      if (at + 1 >= tag.size() || tag[at + 1] != '"')
        return "an attribute without quotes in <" + std::string(tag);
    if (tag.ends_with("/")) continue;
    open.emplace_back(tag.substr(0, tag.find(' ')));
    if (open.back() == "style") i = page.find("</style>", i) - 1;
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

}  // namespace sheaf::test

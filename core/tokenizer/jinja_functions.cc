#include <algorithm>

#include "core/tokenizer/jinja_run.h"

namespace sheaf {
namespace {

constexpr std::string_view kPythonBlanks = " \t\n\r\v\f\x1c\x1d\x1e\x1f";
constexpr std::string_view kTitleBreaks = "- \t\n\r\v\f\x1c\x1d\x1e\x1f({[<";

}  // namespace

bool is_ascii(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

std::string strip_text(std::string_view text, std::string_view which, bool left, bool right) {
  if (left) text.remove_prefix(std::min(text.find_first_not_of(which), text.size()));
  if (right) text = text.substr(0, text.find_last_not_of(which) + 1);  // npos + 1 == 0
  return std::string(text);
}

JinjaValue JinjaRun::Arguments::get(size_t place, std::string_view name) const {
  if (place < values.size()) return values[place];
  for (const auto& [key, value] : named)
    if (key == name) return value;
  return {};
}

JinjaRun::Arguments JinjaRun::arguments(const JinjaNode& node, size_t first) {
  Arguments out;
  for (size_t i = first; i < node.parts.size(); ++i) {
    const JinjaNode& part = *node.parts[i];
    if (part.kind == JinjaNode::Kind::keyword)
      out.named.emplace_back(part.name, evaluate(*part.parts[0]));
    else
      out.values.push_back(evaluate(part));
  }
  return out;
}

JinjaValue JinjaRun::call(const JinjaNode& node) {
  const Arguments given = arguments(node, 0);
  if (node.name == "raise_exception") {
    const JinjaValue reason = given.get(0, "message");
    throw JinjaRefusal(as_text(reason) ? *as_text(reason) : "the template refuses the dialog");
  }
  if (node.name == "namespace" && given.values.empty()) {
    auto space = std::make_shared<JinjaSpace>();
    for (const auto& [name, value] : given.named) {
      if (is_namespace(value))
        not_understood(node.line, "a namespace inside of another value is not supported");
      space->fields.insert_or_assign(name, value);
    }
    return space;
  }
  if (node.name == "dict" && given.values.empty()) return jinja_map(given.named);
  if (node.name == "range" && given.named.empty() && (given.values.size() == 1 || given.values.size() == 2)) {
    int64_t i = given.values.size() == 2 ? need_integer(node, given.values[0]) : 0;
    const int64_t end = need_integer(node, given.values.back());
    Values out;
    for (; i < end; ++i) {
      spend(1);
      out.emplace_back(i);
    }
    return jinja_list(std::move(out));
  }
  not_understood(node.line, fmt::format("the function \"{}\" is not supported", node.name.substr(0, 40)));
}

JinjaValue JinjaRun::method(const JinjaNode& node) {
  const JinjaValue object = evaluate(*node.parts[0]);
  const Arguments given = arguments(node, 1);
  if (const std::string* text = as_text(object)) return text_method(node, *text, given);
  if (const JinjaMap* map = as_map(object)) return map_method(node, *map, given);
  not_understood(node.line, fmt::format("the method \"{}\" of {} is not supported", node.name.substr(0, 40),
                                        kind_name(object)));
}

JinjaValue JinjaRun::text_method(const JinjaNode& node, const std::string& text, const Arguments& given) {
  const std::string& name = node.name;
  spend(1 + text.size() / 256);
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const JinjaValue asked = given.get(0);
    const std::string_view which =
        is_undefined(asked) ? kPythonBlanks : std::string_view(need_text(node, asked));
    if (!is_ascii(which))
      not_understood(node.line, fmt::format("{} of such characters is not supported", name));
    spend_search(text, which);
    return made(strip_text(text, which, name != "rstrip", name != "lstrip"));
  }
  if (name == "startswith" || name == "endswith") {
    const JinjaValue asked = given.get(0);
    const std::string& what = need_text(node, asked);
    return name == "startswith" ? text.starts_with(what) : text.ends_with(what);
  }
  if (name == "split") return split(node, text, given);
  if (name == "replace") return replace(node, text, given);
  // The filter cuts words elsewhere than the method.
  const bool words = name == "title" && node.kind == JinjaNode::Kind::filter;
  const bool title = name == "title", capital = name == "capitalize";
  if (is_ascii(text) && (name == "upper" || name == "lower" || title || capital)) {
    std::string out;
    bool inside = false;  // of a word, or of the text
    for (const char c : text) {
      const bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z';
      const bool wants_upper = name == "upper" || ((title || capital) && !inside);
      out += wants_upper && lower    ? static_cast<char>(c - 32)
             : !wants_upper && upper ? static_cast<char>(c + 32)
                                     : c;
      inside = capital || (words ? kTitleBreaks.find(c) == kTitleBreaks.npos : lower || upper);
    }
    return made(std::move(out));
  }
  not_understood(node.line, fmt::format("the method \"{}\" of a text is not supported", name.substr(0, 40)));
}

JinjaValue JinjaRun::map_method(const JinjaNode& node, const JinjaMap& map, const Arguments& given) {
  spend(map.entries.size());
  if (node.name == "get") {
    const JinjaValue key = given.get(0);
    const JinjaValue* found = as_text(key) ? map.find(*as_text(key)) : nullptr;
    if (found) return *found;
    return given.values.size() > 1 ? given.values[1] : JinjaValue(JinjaNone{});
  }
  Values out;
  for (const auto& [key, value] : map.entries) {
    if (node.name == "keys")
      out.push_back(made(key));
    else if (node.name == "values")
      out.push_back(value);
    else if (node.name == "items")
      out.push_back(jinja_list({made(key), value}));
    else
      not_understood(node.line,
                     fmt::format("the method \"{}\" of a map is not supported", node.name.substr(0, 40)));
  }
  return jinja_list(std::move(out));
}

JinjaValue JinjaRun::split(const JinjaNode& node, const std::string& text, const Arguments& given) {
  const JinjaValue by = given.get(0, "sep"), most = given.get(1, "maxsplit");
  const std::string& mark = need_text(node, by);
  if (mark.empty()) not_understood(node.line, "a text is split at nothing");
  int64_t left = is_undefined(most) ? -1 : need_integer(node, most);
  spend_search(text, mark);
  Values out;
  size_t from = 0;
  for (size_t at = 0; left != 0 && (at = text.find(mark, from)) != std::string::npos; --left) {
    spend(1);
    out.push_back(made(text.substr(from, at - from)));
    from = at + mark.size();
  }
  out.push_back(made(text.substr(from)));
  return jinja_list(std::move(out));
}

JinjaValue JinjaRun::replace(const JinjaNode& node, const std::string& text, const Arguments& given) {
  const JinjaValue from = given.get(0, "old"), to = given.get(1, "new");
  const std::string &old = need_text(node, from), &other = need_text(node, to);
  if (old.empty() || given.values.size() > 2)
    not_understood(node.line, "this way to replace is not supported");
  spend_search(text, old);
  std::string out;
  size_t done = 0;
  for (size_t at = 0; (at = text.find(old, done)) != std::string::npos; done = at + old.size()) {
    spend(1 + other.size() / 64);
    out.append(text, done, at - done).append(other);
  }
  return made(out.append(text, done));
}

}  // namespace sheaf

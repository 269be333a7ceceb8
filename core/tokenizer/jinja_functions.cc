#include <algorithm>

#include "core/text/utf8.h"
#include "core/tokenizer/jinja_run.h"

namespace sheaf {
namespace {

constexpr std::string_view kPythonBlanks = " \t\n\r\v\f\x1c\x1d\x1e\x1f";
constexpr std::string_view kTitleBreaks = "- \t\n\r\v\f\x1c\x1d\x1e\x1f({[<";

}  // namespace

bool is_ascii(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
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
    throw JinjaRefusal(reason.text() ? *reason.text() : "the template refuses the dialog");
  }
  if (node.name == "namespace" && given.values.empty()) {
    auto space = std::make_shared<JinjaSpace>();
    for (const auto& [name, value] : given.named) {
      if (value.space()) not_understood(node.line, "a namespace inside of another value is not supported");
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
  not_understood(node.line, "the function \"{}\" is not supported", node.name.substr(0, 40));
}

JinjaValue JinjaRun::method(const JinjaNode& node) {
  const JinjaValue object = evaluate(*node.parts[0]);
  const Arguments given = arguments(node, 1);
  if (const std::string* text = object.text()) return text_method(node, node.name, *text, given);
  if (const JinjaMap* map = object.map()) return map_method(node, *map, given);
  not_understood(node.line, "the method \"{}\" of {} is not supported", node.name.substr(0, 40),
                 object.kind_name());
}

JinjaValue JinjaRun::text_method(const JinjaNode& node, std::string_view name, const std::string& text,
                                 const Arguments& given) {
  spend(1 + text.size() / 256);
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const JinjaValue asked = given.get(0);
    const std::string_view which =
        asked.is_undefined() ? kPythonBlanks : std::string_view(need_text(node, asked));
    if (!is_ascii(which)) not_understood(node.line, "{} of such characters is not supported", name);
    spend_search(text, which);
    std::string_view left = text;
    if (name != "rstrip") left.remove_prefix(std::min(left.find_first_not_of(which), left.size()));
    if (name != "lstrip") left = left.substr(0, left.find_last_not_of(which) + 1);  // npos + 1 == 0
    return made(std::string(left));
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
  not_understood(node.line, "the method \"{}\" of a text is not supported", name.substr(0, 40));
}

JinjaValue JinjaRun::map_method(const JinjaNode& node, const JinjaMap& map, const Arguments& given) {
  spend(map.entries.size());
  if (node.name == "get") {
    const JinjaValue key = given.get(0);
    const JinjaValue* found = key.text() ? map.find(*key.text()) : nullptr;
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
      not_understood(node.line, "the method \"{}\" of a map is not supported", node.name.substr(0, 40));
  }
  return jinja_list(std::move(out));
}

JinjaValue JinjaRun::split(const JinjaNode& node, const std::string& text, const Arguments& given) {
  const JinjaValue by = given.get(0, "sep"), most = given.get(1, "maxsplit");
  const std::string& mark = need_text(node, by);
  if (mark.empty()) not_understood(node.line, "a text is split at nothing");
  int64_t left = most.is_undefined() ? -1 : need_integer(node, most);
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

JinjaValue JinjaRun::filter(const JinjaNode& node) {
  JinjaValue object = evaluate(*node.parts[0]);
  const Arguments given = arguments(node, 1);
  const std::string& name = node.name;
  if (name == "default" || name == "d") {
    const bool also_false = given.get(1, "boolean").is_true();
    if (!object.is_undefined() && (!also_false || object.is_true())) return object;
    const JinjaValue instead = given.get(0, "default_value");
    return instead.is_undefined() ? jinja_text({}) : instead;
  }
  if (name == "length" || name == "count") {
    if (const std::string* text = object.text()) return static_cast<int64_t>(count_characters(*text));
    return static_cast<int64_t>(items(node, object).size());
  }
  if (name == "list") return jinja_list(items(node, object));
  if (name == "first" || name == "last") {
    const Values all = items(node, object);
    if (all.empty()) return {};
    return name == "first" ? all.front() : all.back();
  }
  if (name == "items" && object.map()) return map_method(node, *object.map(), given);
  if (name == "join") return join(node, object, given);
  if (name == "selectattr" || name == "rejectattr") return select(node, object, given);
  if (name == "string" || name == "safe") return made(shown(node, object));
  if (name == "trim") return text_method(node, "strip", shown(node, object), given);
  for (const char* method : {"upper", "lower", "title", "capitalize", "replace"})
    if (name == method) return text_method(node, name, shown(node, object), given);
  not_understood(node.line, "the filter \"{}\" is not supported", name.substr(0, 40));
}

JinjaValue JinjaRun::join(const JinjaNode& node, const JinjaValue& object, const Arguments& given) {
  const std::string mark = shown(node, given.get(0, "d"));
  std::string out;
  const Values all = items(node, object);
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0) out += mark;
    out += shown(node, all[i]);
    if (out.size() > bytes_left_) break;
  }
  return made(std::move(out));
}

/// selectattr("role", "equalto", "user"), and without a test: what is true.
JinjaValue JinjaRun::select(const JinjaNode& node, const JinjaValue& object, const Arguments& given) {
  const JinjaValue key = given.get(0), by = given.get(1);
  const std::string& name = need_text(node, key);
  Values out;
  for (const JinjaValue& item : items(node, object)) {
    spend(1);
    const JinjaValue value = item.map() ? item.map()->at(name) : JinjaValue();
    const bool wanted =
        by.is_undefined() ? value.is_true() : test_by_name(node, need_text(node, by), value, given.get(2));
    if (wanted == (node.name == "selectattr")) out.push_back(item);
  }
  return jinja_list(std::move(out));
}

bool JinjaRun::test(const JinjaNode& node) {
  const JinjaValue object = evaluate(*node.parts[0]);
  return test_by_name(node, node.name, object, arguments(node, 1).get(0));
}

bool JinjaRun::test_by_name(const JinjaNode& node, const std::string& name, const JinjaValue& object,
                            const JinjaValue& argument) {
  if (name == "defined") return !object.is_undefined();
  if (name == "undefined") return object.is_undefined();
  if (name == "none") return object.is_none();
  if (name == "string") return object.text() != nullptr;
  if (name == "mapping") return object.map() != nullptr;
  // An undefined value can be gone through: it has no items.
  if (name == "iterable" || name == "sequence")
    return object.text() || object.list() || object.map() || object.is_undefined();
  if (name == "boolean") return object.boolean() != nullptr;
  if (name == "integer") return object.integer() != nullptr;
  if (name == "number") return object.integer() || object.boolean();
  if (name == "true" || name == "false") return object.boolean() && *object.boolean() == (name == "true");
  if (name == "equalto" || name == "eq" || name == "==") return equal(object, argument);
  if (name == "ne" || name == "!=") return !equal(object, argument);
  if (name == "in") return contains(node, argument, object);
  if (name == "odd" || name == "even") return (need_integer(node, object) % 2 == 0) == (name == "even");
  not_understood(node.line, "the test \"{}\" is not supported", name.substr(0, 40));
}

}  // namespace sheaf

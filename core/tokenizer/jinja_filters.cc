#include <algorithm>

#include "core/tokenizer/jinja_run.h"

namespace sheaf {

JinjaValue JinjaRun::filter(const JinjaNode& node) {
  JinjaValue object = evaluate(*node.parts[0]);
  const Arguments given = arguments(node, 1);
  const std::string& name = node.name;
  if (name == "default" || name == "d") {
    const bool also_false = is_true(given.get(1, "boolean"));
    if (!is_undefined(object) && (!also_false || is_true(object))) return object;
    const JinjaValue instead = given.get(0, "default_value");
    return is_undefined(instead) ? jinja_text({}) : instead;
  }
  if (name == "length" || name == "count") {
    if (const std::string* text = as_text(object))
      return static_cast<int64_t>(std::ranges::count_if(*text, [](char c) { return (c & 0xC0) != 0x80; }));
    return static_cast<int64_t>(items(node, object).size());
  }
  if (name == "list") return jinja_list(items(node, object));
  if (name == "first" || name == "last") {
    const Values all = items(node, object);
    if (all.empty()) return {};
    return name == "first" ? all.front() : all.back();
  }
  if (name == "items" && as_map(object)) return map_method(node, *as_map(object), given);
  if (name == "join") return join(node, object, given);
  if (name == "selectattr" || name == "rejectattr") return select(node, object, given);
  if (name == "string" || name == "safe") return made(shown(node, object));
  for (const char* method : {"trim", "upper", "lower", "title", "capitalize", "replace"}) {
    if (name != method) continue;
    JinjaNode as_method;
    as_method.name = name == "trim" ? "strip" : name;
    as_method.kind = JinjaNode::Kind::filter;
    as_method.line = node.line;
    return text_method(as_method, shown(node, object), given);
  }
  not_understood(node.line, fmt::format("the filter \"{}\" is not supported", name.substr(0, 40)));
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
    const JinjaMap* map = as_map(item);
    const JinjaValue* found = map ? map->find(name) : nullptr;
    const JinjaValue value = found ? *found : JinjaValue();
    const bool wanted =
        is_undefined(by) ? is_true(value) : test_by_name(node, need_text(node, by), value, given.get(2));
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
  if (name == "defined") return !is_undefined(object);
  if (name == "undefined") return is_undefined(object);
  if (name == "none") return std::holds_alternative<JinjaNone>(object);
  if (name == "string") return as_text(object) != nullptr;
  if (name == "mapping") return as_map(object) != nullptr;
  // An undefined value can be gone through: it has no items.
  if (name == "iterable" || name == "sequence")
    return as_text(object) || as_list(object) || as_map(object) || is_undefined(object);
  if (name == "boolean") return std::holds_alternative<bool>(object);
  if (name == "integer") return as_integer(object) != nullptr;
  if (name == "number") return as_integer(object) || std::holds_alternative<bool>(object);
  if (name == "true" || name == "false") {
    const bool* boolean = std::get_if<bool>(&object);
    return boolean && *boolean == (name == "true");
  }
  if (name == "equalto" || name == "eq" || name == "==") return equal(object, argument);
  if (name == "ne" || name == "!=") return !equal(object, argument);
  if (name == "in") return contains(node, argument, object);
  if (name == "odd" || name == "even") return (need_integer(node, object) % 2 == 0) == (name == "even");
  not_understood(node.line, fmt::format("the test \"{}\" is not supported", name.substr(0, 40)));
}

}  // namespace sheaf

#include <algorithm>
#include <compare>

#include "core/tokenizer/jinja_run.h"

namespace sheaf {
namespace {

/// True and 1 are equal, as in Python.
std::optional<int64_t> number_of(const JinjaValue& value) {
  if (const bool* boolean = std::get_if<bool>(&value)) return *boolean ? 1 : 0;
  if (const int64_t* number = as_integer(value)) return *number;
  return std::nullopt;
}

int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

/// The places that [from:to:step] takes of `size` items, as in Python.
std::vector<size_t> slice_places(std::optional<int64_t> from, std::optional<int64_t> to, int64_t step,
                                 size_t items) {
  const auto size = static_cast<int64_t>(items);
  const int64_t least = step < 0 ? -1 : 0, most = step < 0 ? size - 1 : size;
  const auto place = [&](std::optional<int64_t> given, int64_t none) {
    if (!given) return none;
    return std::clamp(*given < 0 ? std::max(*given, -size - 1) + size : *given, least, most);
  };
  const int64_t first = place(from, step < 0 ? most : least), end = place(to, step < 0 ? least : most);
  std::vector<size_t> places;
  for (int64_t i = first; step < 0 ? i > end : i < end; i += std::clamp<int64_t>(step, -size - 1, size + 1))
    places.push_back(static_cast<size_t>(i));
  return places;
}

}  // namespace

JinjaValue JinjaRun::evaluate(const JinjaNode& node) {
  spend(1);
  switch (node.kind) {
    case JinjaNode::Kind::constant:
      return node.value;
    case JinjaNode::Kind::name:
      return look_up(node.name);
    case JinjaNode::Kind::attribute:
      return attribute(node, evaluate(*node.parts[0]));
    case JinjaNode::Kind::index: {
      const JinjaValue object = evaluate(*node.parts[0]);
      return index(node, object, evaluate(*node.parts[1]));
    }
    case JinjaNode::Kind::slice:
      return slice(node);
    case JinjaNode::Kind::call:
      return call(node);
    case JinjaNode::Kind::method:
      return method(node);
    case JinjaNode::Kind::filter:
      return filter(node);
    case JinjaNode::Kind::test:
      return test(node);
    case JinjaNode::Kind::negate:
      return arithmetic(node, 0, need_integer(node, evaluate(*node.parts[0])));
    case JinjaNode::Kind::invert:
      return !is_true(evaluate(*node.parts[0]));
    case JinjaNode::Kind::both:
    case JinjaNode::Kind::either: {
      JinjaValue first = evaluate(*node.parts[0]);
      return is_true(first) == (node.kind == JinjaNode::Kind::either) ? first : evaluate(*node.parts[1]);
    }
    case JinjaNode::Kind::binary:
      return binary(node);
    case JinjaNode::Kind::choice:
      if (is_true(evaluate(*node.parts[1]))) return evaluate(*node.parts[0]);
      return node.parts[2] ? evaluate(*node.parts[2]) : JinjaValue();
    case JinjaNode::Kind::list: {
      Values list;
      for (const JinjaNodePtr& part : node.parts) list.push_back(evaluate(*part));
      return jinja_list(std::move(list));
    }
    case JinjaNode::Kind::map:
      return make_map(node);
    default:
      not_understood(node.line, "a value is expected");
  }
}

JinjaValue JinjaRun::look_up(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->find(name); found != scope->end()) return found->second;
  return {};
}

JinjaValue JinjaRun::make_map(const JinjaNode& node) {
  std::vector<std::pair<std::string, JinjaValue>> entries;
  for (size_t i = 0; i + 1 < node.parts.size(); i += 2) {
    std::string key = need_text(node, evaluate(*node.parts[i]));
    JinjaValue value = evaluate(*node.parts[i + 1]);
    spend(entries.size());
    const auto same = std::ranges::find(entries, key, [](const auto& entry) { return entry.first; });
    if (same == entries.end())
      entries.emplace_back(std::move(key), std::move(value));
    else
      same->second = std::move(value);
  }
  return jinja_map(std::move(entries));
}

JinjaValue JinjaRun::attribute(const JinjaNode& node, const JinjaValue& object) const {
  if (is_undefined(object)) not_understood(node.line, fmt::format("\"{}\" of an undefined value", node.name));
  if (const auto* space = std::get_if<std::shared_ptr<JinjaSpace>>(&object)) {
    const auto found = (*space)->fields.find(node.name);
    return found == (*space)->fields.end() ? JinjaValue() : found->second;
  }
  const JinjaMap* map = as_map(object);
  if (!map) return {};
  for (const char* name : {"items", "keys", "values", "get", "pop", "update", "clear", "copy", "setdefault"})
    if (node.name == name)
      not_understood(node.line, fmt::format("\"{}\" without a call is not supported", name));
  const JinjaValue* found = map->find(node.name);
  return found ? *found : JinjaValue();
}

JinjaValue JinjaRun::index(const JinjaNode& node, const JinjaValue& object, const JinjaValue& key) {
  if (is_undefined(object)) not_understood(node.line, "a part of an undefined value");
  if (const JinjaMap* map = as_map(object)) {
    spend(1 + map->entries.size() / 16);
    const std::string* name = as_text(key);
    const JinjaValue* found = name ? map->find(*name) : nullptr;
    return found ? *found : JinjaValue();
  }
  const JinjaList* list = as_list(object);
  const std::optional<int64_t> number = number_of(key);
  if (list && number) {
    const auto size = static_cast<int64_t>(list->items.size());
    const int64_t at = *number < 0 ? *number + size : *number;
    return at >= 0 && at < size ? list->items[static_cast<size_t>(at)] : JinjaValue();
  }
  if (as_text(object) && number) not_understood(node.line, "a character of a text is not supported");
  if (is_namespace(object)) not_understood(node.line, "a namespace in brackets is not supported");
  return {};
}

JinjaValue JinjaRun::slice(const JinjaNode& node) {
  const JinjaValue object = evaluate(*node.parts[0]);
  std::optional<int64_t> given[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!node.parts[i + 1]) continue;
    const JinjaValue value = evaluate(*node.parts[i + 1]);
    if (!std::holds_alternative<JinjaNone>(value)) given[i] = need_integer(node, value);
  }
  const int64_t step = given[2].value_or(1);
  if (step == 0) not_understood(node.line, "a slice has the step 0");
  if (const JinjaList* list = as_list(object)) {
    spend(list->items.size());
    Values out;
    for (const size_t i : slice_places(given[0], given[1], step, list->items.size()))
      out.push_back(list->items[i]);
    return jinja_list(std::move(out));
  }
  const std::string& text = need_text(node, object);
  if (!is_ascii(text)) not_understood(node.line, "a slice of a text that is not ASCII is not supported");
  spend(text.size() / 16);
  std::string out;
  for (const size_t i : slice_places(given[0], given[1], step, text.size())) out += text[i];
  return made(std::move(out));
}

JinjaValue JinjaRun::arithmetic(const JinjaNode& node, int64_t a, int64_t b) const {
  int64_t out = 0;
  bool overflow = false;
  if (node.name == "+")
    overflow = __builtin_add_overflow(a, b, &out);
  else if (node.name == "-" || node.kind == JinjaNode::Kind::negate)
    overflow = __builtin_sub_overflow(a, b, &out);
  else if (node.name == "*")
    overflow = __builtin_mul_overflow(a, b, &out);
  else if ((node.name == "//" || node.name == "%") && b != 0 && b != -1)
    out = node.name == "%" ? a - floor_quotient(a, b) * b : floor_quotient(a, b);
  else
    not_understood(node.line, fmt::format("\"{}\" of these numbers is not supported", node.name));
  if (overflow) not_understood(node.line, "a number is too large");
  return out;
}

JinjaValue JinjaRun::binary(const JinjaNode& node) {
  const JinjaValue a = evaluate(*node.parts[0]), b = evaluate(*node.parts[1]);
  const std::string& name = node.name;
  if (name == "==") return equal(a, b);
  if (name == "!=") return !equal(a, b);
  if (name == "in") return contains(node, b, a);
  if (name[0] == '<' || name[0] == '>') return ordered(node, a, b);
  if (name == "~") return made(shown(node, a) + shown(node, b));
  if (as_integer(a) && as_integer(b)) return arithmetic(node, *as_integer(a), *as_integer(b));
  if (name == "+" && as_text(a) && as_text(b)) return made(*as_text(a) + *as_text(b));
  if (name == "+" && as_list(a) && as_list(b)) {
    spend(as_list(a)->items.size() + as_list(b)->items.size());
    Values both = as_list(a)->items;
    both.insert(both.end(), as_list(b)->items.begin(), as_list(b)->items.end());
    return jinja_list(std::move(both));
  }
  not_understood(node.line, fmt::format("{} \"{}\" {} is not supported", kind_name(a), name, kind_name(b)));
}

bool JinjaRun::ordered(const JinjaNode& node, const JinjaValue& a, const JinjaValue& b) const {
  std::strong_ordering order = std::strong_ordering::equal;
  if (const auto x = number_of(a), y = number_of(b); x && y)
    order = *x <=> *y;
  else if (as_text(a) && as_text(b))
    order = as_text(a)->compare(*as_text(b)) <=> 0;
  else
    not_understood(node.line,
                   fmt::format("{} \"{}\" {} is not supported", kind_name(a), node.name, kind_name(b)));
  if (order == 0) return node.name.size() == 2;
  return (order < 0) == (node.name[0] == '<');
}

bool JinjaRun::equal(const JinjaValue& a, const JinjaValue& b) {
  spend(1);
  if (const auto x = number_of(a), y = number_of(b); x && y) return *x == *y;
  if (a.index() != b.index()) return false;
  if (const std::string* text = as_text(a)) {
    spend(text->size() / 256);
    return *text == *as_text(b);
  }
  if (const JinjaList* list = as_list(a))
    return std::ranges::equal(list->items, as_list(b)->items,
                              [this](const JinjaValue& x, const JinjaValue& y) { return equal(x, y); });
  if (const JinjaMap* map = as_map(a)) {
    if (map->entries.size() != as_map(b)->entries.size()) return false;
    spend(map->entries.size() * map->entries.size() / 16);
    return std::ranges::all_of(map->entries, [&](const auto& entry) {
      const JinjaValue* other = as_map(b)->find(entry.first);
      return other && equal(entry.second, *other);
    });
  }
  if (const auto* space = std::get_if<std::shared_ptr<JinjaSpace>>(&a))
    return *space == std::get<std::shared_ptr<JinjaSpace>>(b);
  return true;
}

bool JinjaRun::contains(const JinjaNode& node, const JinjaValue& all, const JinjaValue& one) {
  if (is_undefined(all)) return false;
  if (const std::string* text = as_text(all)) {
    const std::string& what = need_text(node, one);
    spend_search(*text, what);
    return text->find(what) != std::string::npos;
  }
  if (const JinjaMap* map = as_map(all)) {
    spend(1 + map->entries.size() / 16);
    return as_text(one) && map->find(*as_text(one));
  }
  if (const JinjaList* list = as_list(all))
    return std::ranges::any_of(list->items, [&](const JinjaValue& item) { return equal(item, one); });
  not_understood(node.line, fmt::format("\"in\" {} is not supported", kind_name(all)));
}

std::string JinjaRun::shown(const JinjaNode& node, const JinjaValue& value) const {
  if (is_undefined(value)) return {};
  if (std::holds_alternative<JinjaNone>(value)) return "None";
  if (const bool* boolean = std::get_if<bool>(&value)) return *boolean ? "True" : "False";
  if (const int64_t* number = as_integer(value)) return fmt::format("{}", *number);
  if (const std::string* text = as_text(value)) return *text;
  not_understood(node.line, fmt::format("{} as text is not supported", kind_name(value)));
}

const std::string& JinjaRun::need_text(const JinjaNode& node, const JinjaValue& value) const {
  const std::string* text = as_text(value);
  if (!text) not_understood(node.line, fmt::format("a text is expected, not {}", kind_name(value)));
  return *text;
}

int64_t JinjaRun::need_integer(const JinjaNode& node, const JinjaValue& value) const {
  const int64_t* number = as_integer(value);
  if (!number) not_understood(node.line, fmt::format("a number is expected, not {}", kind_name(value)));
  return *number;
}

}  // namespace sheaf

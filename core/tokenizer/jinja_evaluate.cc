#include <algorithm>
#include <span>

#include "core/tokenizer/jinja_run.h"

namespace sheaf {
namespace {

// What Python has under these names comes before a map's own entries.
constexpr std::string_view kMapMethods[] = {"items",  "keys",  "values", "get",       "pop",
                                            "update", "clear", "copy",   "setdefault"};
constexpr std::string_view kTextMethods[] = {"strip",    "lstrip", "rstrip", "split", "startswith",
                                             "endswith", "upper",  "lower",  "title", "capitalize",
                                             "replace",  "join",   "format"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
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

int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

JinjaValue attribute(const JinjaNode& node, const JinjaValue& object) {
  if (object.is_undefined()) not_understood(node.line, "\"{}\" of an undefined value", node.name);
  if (const JinjaSpace* space = object.space()) {
    const auto found = space->fields.find(node.name);
    return found == space->fields.end() ? JinjaValue() : found->second;
  }
  const JinjaMap* map = object.map();
  if (object.text() ? is_one_of(kTextMethods, node.name) : map && is_one_of(kMapMethods, node.name))
    not_understood(node.line, "\"{}\" without a call is not supported", node.name);
  return map ? map->at(node.name) : JinjaValue();
}

JinjaValue arithmetic(const JinjaNode& node, int64_t a, int64_t b) {
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
    not_understood(node.line, "\"{}\" of these numbers is not supported", node.name);
  if (overflow) not_understood(node.line, "a number is too large");
  return out;
}

bool ordered(const JinjaNode& node, const JinjaValue& a, const JinjaValue& b) {
  int64_t order = 0;  // below 0: a is less
  if (const auto x = a.number(), y = b.number(); x && y)
    order = *x < *y ? -1 : *x > *y;
  else if (a.text() && b.text())
    order = a.text()->compare(*b.text());
  else
    not_understood(node.line, "{} \"{}\" {} is not supported", a.kind_name(), node.name, b.kind_name());
  if (order == 0) return node.name.size() == 2;
  return (order < 0) == (node.name[0] == '<');
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
      return !evaluate(*node.parts[0]).is_true();
    case JinjaNode::Kind::both:
    case JinjaNode::Kind::either: {
      JinjaValue first = evaluate(*node.parts[0]);
      return first.is_true() == (node.kind == JinjaNode::Kind::either) ? first : evaluate(*node.parts[1]);
    }
    case JinjaNode::Kind::binary:
      return binary(node);
    case JinjaNode::Kind::choice:
      if (evaluate(*node.parts[1]).is_true()) return evaluate(*node.parts[0]);
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
  for (size_t i = scopes_.size(); i-- > 0;)
    if (const auto found = scopes_[i].find(name); found != scopes_[i].end()) return found->second;
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

JinjaValue JinjaRun::index(const JinjaNode& node, const JinjaValue& object, const JinjaValue& key) {
  if (object.is_undefined()) not_understood(node.line, "a part of an undefined value");
  if (const JinjaMap* map = object.map()) {
    spend(1 + map->entries.size() / 16);
    return key.text() ? map->at(*key.text()) : JinjaValue();
  }
  const JinjaList* list = object.list();
  const std::optional<int64_t> number = key.number();
  if (list && number) {
    const auto size = static_cast<int64_t>(list->items.size());
    const int64_t at = *number < 0 ? *number + size : *number;
    return at >= 0 && at < size ? list->items[static_cast<size_t>(at)] : JinjaValue();
  }
  if (object.text() && number) not_understood(node.line, "a character of a text is not supported");
  if (object.space()) not_understood(node.line, "a namespace in brackets is not supported");
  return {};
}

JinjaValue JinjaRun::slice(const JinjaNode& node) {
  const JinjaValue object = evaluate(*node.parts[0]);
  std::optional<int64_t> given[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!node.parts[i + 1]) continue;
    const JinjaValue value = evaluate(*node.parts[i + 1]);
    if (!value.is_none()) given[i] = need_integer(node, value);
  }
  const int64_t step = given[2].value_or(1);
  if (step == 0) not_understood(node.line, "a slice has the step 0");
  if (const JinjaList* list = object.list()) {
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

std::string JinjaRun::shown(const JinjaNode& node, const JinjaValue& value) const {
  if (value.is_undefined()) return {};
  if (value.is_none()) return "None";
  if (const bool* boolean = value.boolean()) return *boolean ? "True" : "False";
  if (const int64_t* number = value.integer()) return fmt::format("{}", *number);
  if (const std::string* text = value.text()) return *text;
  not_understood(node.line, "{} as text is not supported", value.kind_name());
}

const std::string& JinjaRun::need_text(const JinjaNode& node, const JinjaValue& value) const {
  const std::string* text = value.text();
  if (!text) not_understood(node.line, "a text is expected, not {}", value.kind_name());
  return *text;
}

int64_t JinjaRun::need_integer(const JinjaNode& node, const JinjaValue& value) const {
  const int64_t* number = value.integer();
  if (!number) not_understood(node.line, "a number is expected, not {}", value.kind_name());
  return *number;
}

JinjaValue JinjaRun::binary(const JinjaNode& node) {
  const JinjaValue a = evaluate(*node.parts[0]), b = evaluate(*node.parts[1]);
  const std::string& name = node.name;
  if (name == "==") return equal(a, b);
  if (name == "!=") return !equal(a, b);
  if (name == "in") return contains(node, b, a);
  if (name[0] == '<' || name[0] == '>') return ordered(node, a, b);
  if (name == "~") return made(shown(node, a) + shown(node, b));
  if (a.integer() && b.integer()) return arithmetic(node, *a.integer(), *b.integer());
  if (name == "+" && a.text() && b.text()) return made(*a.text() + *b.text());
  if (name == "+" && a.list() && b.list()) {
    spend(a.list()->items.size() + b.list()->items.size());
    Values both = a.list()->items;
    both.insert(both.end(), b.list()->items.begin(), b.list()->items.end());
    return jinja_list(std::move(both));
  }
  not_understood(node.line, "{} \"{}\" {} is not supported", a.kind_name(), name, b.kind_name());
}

bool JinjaRun::equal(const JinjaValue& a, const JinjaValue& b) {
  spend(1);
  if (const auto x = a.number(), y = b.number(); x && y) return *x == *y;
  if (a.index() != b.index()) return false;
  if (const std::string* text = a.text()) {
    spend(text->size() / 256);
    return *text == *b.text();
  }
  if (const JinjaList* list = a.list())
    return std::ranges::equal(list->items, b.list()->items,
                              [this](const JinjaValue& x, const JinjaValue& y) { return equal(x, y); });
  if (const JinjaMap* map = a.map()) {
    if (map->entries.size() != b.map()->entries.size()) return false;
    spend(map->entries.size() * map->entries.size() / 16);
    return std::ranges::all_of(map->entries, [&](const auto& entry) {
      const JinjaValue* other = b.map()->find(entry.first);
      return other && equal(entry.second, *other);
    });
  }
  return a.space() == b.space();
}

bool JinjaRun::contains(const JinjaNode& node, const JinjaValue& all, const JinjaValue& one) {
  if (all.is_undefined()) return false;
  if (const std::string* text = all.text()) {
    const std::string& what = need_text(node, one);
    spend_search(*text, what);
    return text->find(what) != std::string::npos;
  }
  if (const JinjaMap* map = all.map()) {
    spend(1 + map->entries.size() / 16);
    return one.text() && map->find(*one.text());
  }
  if (const JinjaList* list = all.list())
    return std::ranges::any_of(list->items, [&](const JinjaValue& item) { return equal(item, one); });
  not_understood(node.line, "\"in\" {} is not supported", all.kind_name());
}

}  // namespace sheaf

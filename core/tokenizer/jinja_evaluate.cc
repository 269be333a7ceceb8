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

JinjaValue JinjaRun::attribute(const JinjaNode& node, const JinjaValue& object) const {
  if (is_undefined(object)) not_understood(node.line, fmt::format("\"{}\" of an undefined value", node.name));
  if (const auto* space = std::get_if<std::shared_ptr<JinjaSpace>>(&object)) {
    const auto found = (*space)->fields.find(node.name);
    return found == (*space)->fields.end() ? JinjaValue() : found->second;
  }
  const JinjaMap* map = as_map(object);
  if (as_text(object) ? is_one_of(kTextMethods, node.name) : map && is_one_of(kMapMethods, node.name))
    not_understood(node.line, fmt::format("\"{}\" without a call is not supported", node.name));
  if (!map) return {};
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
  const std::optional<int64_t> number = as_number(key);
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

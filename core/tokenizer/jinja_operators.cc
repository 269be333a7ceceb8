#include <algorithm>

#include "core/tokenizer/jinja_run.h"

namespace sheaf {
namespace {

int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

}  // namespace

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
  int64_t order = 0;  // below 0: a is less
  if (const auto x = as_number(a), y = as_number(b); x && y)
    order = *x < *y ? -1 : *x > *y;
  else if (as_text(a) && as_text(b))
    order = as_text(a)->compare(*as_text(b));
  else
    not_understood(node.line,
                   fmt::format("{} \"{}\" {} is not supported", kind_name(a), node.name, kind_name(b)));
  if (order == 0) return node.name.size() == 2;
  return (order < 0) == (node.name[0] == '<');
}

bool JinjaRun::equal(const JinjaValue& a, const JinjaValue& b) {
  spend(1);
  if (const auto x = as_number(a), y = as_number(b); x && y) return *x == *y;
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

}  // namespace sheaf

#include "core/tokenizer/jinja_node.h"

#include <algorithm>
#include <ranges>

#include "core/base/error.h"

namespace sheaf {
namespace {

constexpr int kMostValueDepth = 16;

/// The depth of what holds these values.
template <class Values>
int depth_around(const Values& values) {
  int deepest = 0;
  for (const JinjaValue& value : values) {
    if (value.space()) throw BadText("a namespace inside of another value is not supported");
    if (const JinjaList* list = value.list()) deepest = std::max(deepest, list->depth);
    if (const JinjaMap* map = value.map()) deepest = std::max(deepest, map->depth);
  }
  if (deepest >= kMostValueDepth) throw BadText("a list nests too deep");
  return deepest + 1;
}

}  // namespace

const JinjaValue* JinjaMap::find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, [](const auto& entry) { return entry.first; });
  return found == entries.end() ? nullptr : &found->second;
}

JinjaValue JinjaMap::at(std::string_view key) const {
  const JinjaValue* found = find(key);
  return found ? *found : JinjaValue();
}

JinjaValue jinja_text(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

JinjaValue jinja_list(std::vector<JinjaValue> items) {
  const int depth = depth_around(items);
  return std::make_shared<const JinjaList>(JinjaList{std::move(items), depth});
}

JinjaValue jinja_map(std::vector<std::pair<std::string, JinjaValue>> entries) {
  const int depth = depth_around(std::views::values(entries));
  return std::make_shared<const JinjaMap>(JinjaMap{std::move(entries), depth});
}

std::optional<int64_t> JinjaValue::number() const {
  if (boolean()) return *boolean() ? 1 : 0;
  return integer() ? std::optional(*integer()) : std::nullopt;
}

bool JinjaValue::is_true() const {
  if (const auto as_number = number()) return *as_number != 0;
  if (text()) return !text()->empty();
  if (list()) return !list()->items.empty();
  if (map()) return !map()->entries.empty();
  return space() != nullptr;
}

const char* JinjaValue::kind_name() const {
  constexpr const char* names[] = {
      "an undefined value", "none", "a boolean", "a number", "a text", "a list", "a map", "a namespace"};
  return names[index()];
}

}  // namespace sheaf

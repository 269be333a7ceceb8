#include "core/tokenizer/jinja_value.h"

#include <algorithm>

#include "core/base/error.h"

namespace sheaf {
namespace {

constexpr int kMostValueDepth = 16;

int depth_of_value(const JinjaValue& value) {
  if (is_namespace(value)) throw BadText("a namespace inside of another value is not supported");
  if (const JinjaList* list = as_list(value)) return list->depth;
  if (const JinjaMap* map = as_map(value)) return map->depth;
  return 0;
}

int checked_depth(int deepest) {
  if (deepest >= kMostValueDepth) throw BadText("a list nests too deep");
  return deepest + 1;
}

template <class T>
const T* shared_part(const JinjaValue& value) {
  const auto* found = std::get_if<std::shared_ptr<const T>>(&value);
  return found ? found->get() : nullptr;
}

}  // namespace

const JinjaValue* JinjaMap::find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, [](const auto& entry) { return entry.first; });
  return found == entries.end() ? nullptr : &found->second;
}

JinjaValue jinja_text(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

JinjaValue jinja_list(std::vector<JinjaValue> items) {
  int deepest = 0;
  for (const JinjaValue& item : items) deepest = std::max(deepest, depth_of_value(item));
  return std::make_shared<const JinjaList>(JinjaList{std::move(items), checked_depth(deepest)});
}

JinjaValue jinja_map(std::vector<std::pair<std::string, JinjaValue>> entries) {
  int deepest = 0;
  for (const auto& entry : entries) deepest = std::max(deepest, depth_of_value(entry.second));
  return std::make_shared<const JinjaMap>(JinjaMap{std::move(entries), checked_depth(deepest)});
}

const std::string* as_text(const JinjaValue& value) {
  return shared_part<std::string>(value);
}

const JinjaList* as_list(const JinjaValue& value) {
  return shared_part<JinjaList>(value);
}

const JinjaMap* as_map(const JinjaValue& value) {
  return shared_part<JinjaMap>(value);
}

const int64_t* as_integer(const JinjaValue& value) {
  return std::get_if<int64_t>(&value);
}

std::optional<int64_t> as_number(const JinjaValue& value) {
  if (const bool* boolean = std::get_if<bool>(&value)) return *boolean ? 1 : 0;
  if (const int64_t* number = as_integer(value)) return *number;
  return std::nullopt;
}

bool is_undefined(const JinjaValue& value) {
  return std::holds_alternative<JinjaUndefined>(value);
}

bool is_namespace(const JinjaValue& value) {
  return std::holds_alternative<std::shared_ptr<JinjaSpace>>(value);
}

bool is_true(const JinjaValue& value) {
  if (const bool* boolean = std::get_if<bool>(&value)) return *boolean;
  if (const int64_t* number = as_integer(value)) return *number != 0;
  if (const std::string* text = as_text(value)) return !text->empty();
  if (const JinjaList* list = as_list(value)) return !list->items.empty();
  if (const JinjaMap* map = as_map(value)) return !map->entries.empty();
  return is_namespace(value);
}

const char* kind_name(const JinjaValue& value) {
  constexpr const char* names[] = {
      "an undefined value", "none", "a boolean", "a number", "a text", "a list", "a map", "a namespace"};
  return names[value.index()];
}

}  // namespace sheaf

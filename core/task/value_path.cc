#include "core/task/value_path.h"

#include <algorithm>
#include <charconv>

#include "core/text/json_reader.h"

namespace sheaf {
namespace {

constexpr std::string_view kSpecial = ".[]\"";
constexpr size_t kMostSteps = 64;  // no value lies deeper, whatever is read

/// Takes a key off `text`: a JSON text, or all up to a special character.
std::optional<std::string> take_name(std::string_view& text) {
  if (!text.starts_with('"')) {
    const std::string_view name = text.substr(0, text.find_first_of(kSpecial));
    text.remove_prefix(name.size());
    if (name.empty()) return std::nullopt;
    return std::string(name);
  }
  size_t end = 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  if (end >= text.size()) return std::nullopt;
  const nlohmann::json name = read_json(text.substr(0, end + 1));
  if (!name.is_string()) return std::nullopt;
  text.remove_prefix(end + 1);
  return name.get<std::string>();
}

/// Takes "[2]" off `text`.
std::optional<int32_t> take_entry(std::string_view& text) {
  int32_t entry = 0;
  const char *begin = text.data() + 1, *end = text.data() + text.size();
  const auto [after, error] = std::from_chars(begin, end, entry);
  const bool plain = error == std::errc() && after != end && *after == ']' && *begin != '-' &&
                     (*begin != '0' || after == begin + 1);
  if (!plain) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(after + 1 - text.data()));
  return entry;
}

}  // namespace

std::string path_text(const ValuePath& path) {
  if (path.size() == 1 && !path[0].entry) return path[0].name;
  std::string text;
  for (const PathStep& step : path) {
    if (!text.empty()) text += '.';
    const bool quoted = step.name.empty() || step.name.find_first_of(kSpecial) != std::string::npos;
    text += quoted ? nlohmann::json(step.name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                   : step.name;
    if (step.entry) text += '[' + std::to_string(*step.entry) + ']';
  }
  return text;
}

std::optional<ValuePath> read_path(std::string_view text) {
  ValuePath path;
  while (path.size() < kMostSteps) {
    auto name = take_name(text);
    if (!name) return std::nullopt;
    path.push_back({std::move(*name)});
    if (text.starts_with('[')) {
      path.back().entry = take_entry(text);
      if (!path.back().entry) return std::nullopt;
    }
    if (text.empty()) return path;
    if (text[0] != '.') return std::nullopt;
    text.remove_prefix(1);
  }
  return std::nullopt;
}

const Attribute* find_attribute(const std::vector<Attribute>& attributes, std::string_view path) {
  if (const auto plain = std::ranges::find(attributes, path, &Attribute::name); plain != attributes.end())
    return &*plain;
  const auto steps = read_path(path);
  if (!steps) return nullptr;
  const std::vector<Attribute>* level = &attributes;
  const Attribute* found = nullptr;
  for (const PathStep& step : *steps) {
    const auto next = std::ranges::find(*level, step.name, &Attribute::name);
    if (next == level->end()) return nullptr;
    if (step.entry && next->type != ValueType::entries) return nullptr;
    found = &*next;
    level = &found->fields;
  }
  return found;
}

}  // namespace sheaf

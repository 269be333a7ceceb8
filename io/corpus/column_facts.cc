#include "io/corpus/column_facts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

#include "core/task/gold_kinds.h"
#include "core/text/date_text.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr int64_t kMostChoices = 12, kLeastForChoices = 20, kLeastPerChoice = 5;
constexpr size_t kLongestChoice = 60, kMostFieldsShown = 50, kLongestField = 200;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '/' || c == '-' || c == ' ';
}

}  // namespace

bool is_written_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  if (text.size() > 1 && text[0] == '0' && text[1] != '.') return false;
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

std::string scalar_text(const json& value) {
  if (value.is_string()) return valid_utf8(value.get_ref<const std::string&>());
  return value.is_null() || value.is_structured() ? std::string() : value.dump();
}

void ColumnFacts::add(const json& value) {
  const std::string text = scalar_text(value);
  if (value.is_null() || (value.is_string() && text.find_first_not_of(" \t\r\n") == std::string::npos))
    return;
  ++given;
  lists += value.is_array();
  objects += value.is_object();
  if (value.is_object()) add_fields(value);
  if (value.is_array() && std::ranges::any_of(value, &json::is_object)) {
    ++object_lists;
    for (const json& entry : value) add_fields(entry);
  }
  if (value.is_structured()) return;
  const bool number = value.is_number() || (value.is_string() && is_written_number(text));
  numbers += number;
  whole_numbers += number && text.find_first_of(".eE") == std::string::npos;
  booleans += value.is_boolean() || text == "true" || text == "false";
  dates += !number && read_date_text(text).trouble == DateText::Trouble::none;
  urls += text.starts_with("http://") || text.starts_with("https://");
  bytes += text.size();
  longest = std::max(longest, text.size());
  ++values[text];
}

void ColumnFacts::add_gold(const json& value) {
  const bool one = value.is_array() && value.size() == 1 && !value[0].is_structured();
  if (!value.is_array() || !value.empty()) add(one ? value[0] : value);
}

void ColumnFacts::add_fields(const json& object) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) {
    auto field = std::ranges::find(fields, key, &ColumnFacts::name);
    if (field == fields.end()) {
      if (fields.size() == kMostFieldsShown || key.size() > kLongestField ||
          key.find(char{}) != std::string::npos || key.find_first_not_of(" \t\r\n") == std::string::npos)
        continue;
      fields.push_back({key});
      field = std::prev(fields.end());
    }
    field->add_gold(value);
  }
}

std::string ColumnFacts::strange(const json& value, const std::string& path) const {
  if (value.is_null() || (value.is_array() && value.empty())) return {};
  if (!nested()) {
    const bool object =
        value.is_object() || (value.is_array() && std::ranges::any_of(value, &json::is_object));
    return object ? wrong_kind(path, kPlainKind, value) : "";
  }
  const bool list = object_lists > 0;
  const json entries = list && value.is_object() ? json::array({value}) : value;
  const bool fits =
      list ? entries.is_array() && std::ranges::all_of(entries, &json::is_object) : value.is_object();
  if (!fits) return wrong_kind(path, list ? kListKind : kObjectKind, value);
  const json all = list ? entries : json::array({value});
  for (const ColumnFacts& field : fields) {
    const std::string inner = path + "." + field.name;
    for (const json& entry : all)
      if (const auto part = entry.find(field.name); part != entry.end())
        if (std::string trouble = field.strange(*part, inner); !trouble.empty()) return trouble;
  }
  return {};
}

std::string ColumnFacts::nested_type(int32_t depth) const {
  const bool list = object_lists > 0;
  std::string inner;
  const auto can_be_anchor = [](const ColumnFacts& field) {
    return !field.nested() && field.lists == 0 && (field.numbers < field.given || field.given == 0) &&
           (field.booleans < field.given || field.given == 0);
  };
  const bool anchor = std::ranges::any_of(fields, can_be_anchor);
  for (const ColumnFacts& field : fields) {
    // What tells entries apart must be a text.
    const bool made_text = list && !anchor && &field == &fields.front();
    inner += fmt::format("{}{{name: {}, {}}}", inner.empty() ? "" : ", ", yaml_word(field.name),
                         made_text ? "type: text" : field.schema_type(depth + 1));
  }
  return fmt::format("type: {}, attributes: [{}]", list ? "list" : "object", inner);
}

bool ColumnFacts::is_text() const {
  return given > 0 && scalar() && numbers < given && booleans < given && dates < given && 2 * urls < given;
}

bool ColumnFacts::is_called(std::string_view words) const {
  std::string plain = small_letters(name);
  std::erase_if(plain, [](char c) { return c == '_' || c == '-' || c == ' ' || c == '.'; });
  return !plain.empty() && fmt::format(" {} ", words).find(fmt::format(" {} ", plain)) != std::string::npos;
}

std::string ColumnFacts::schema_type(int32_t depth) const {
  if (nested() && !fields.empty() && depth < kDeepest) return nested_type(depth);
  if (lists > 0) return "type: list";
  if (given > 0 && whole_numbers == given) return "type: integer";
  if (given > 0 && numbers == given) return "type: number";
  if (given > 0 && booleans == given) return "type: boolean";
  if (given > 0 && dates == given) return "type: date";
  const auto kinds = static_cast<int64_t>(values.size());
  if (kinds >= 2 && kinds <= kMostChoices && given >= kLeastForChoices && given >= kLeastPerChoice * kinds &&
      longest <= kLongestChoice && std::ranges::none_of(values, [](const auto& each) {
        return each.first.find_first_of(std::string_view("\r\n\t\0", 4)) != std::string::npos ||
               each.first.front() == ' ' || each.first.back() == ' ';
      })) {
    std::string options;
    for (const auto& [value, count] : values) options += (options.empty() ? "" : ", ") + yaml_word(value);
    return fmt::format("type: enum, options: [{}]", options);
  }
  return "type: text";
}

std::string yaml_word(const std::string& text) {
  // What YAML would read as something else than text.
  static constexpr std::array<std::string_view, 10> kOther = {"null", "true", "false", "yes", "no",
                                                              "on",   "off",  "y",     "n",   "~"};
  const std::string small = small_letters(text);
  const bool letter = !text.empty() && ((small[0] >= 'a' && small[0] <= 'z') || small[0] == '/');
  if (letter && text.back() != ' ' && std::ranges::all_of(text, is_plain) &&
      std::ranges::find(kOther, small) == kOther.end())
    return text;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sheaf

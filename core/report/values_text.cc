#include "core/report/values_text.h"

#include <fmt/ranges.h>

#include "core/text/spelling.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kLongestShown = 200;  // bytes of a value

std::string indented_lines(const std::vector<AttributeValue>& values, const std::string& indent);

/// Entries as YAML has them: each begins with a dash.
std::string entry_lines(const std::vector<RowObject>& entries, const std::string& indent) {
  std::string text;
  for (const RowObject& entry : entries) {
    std::string lines = indented_lines(entry.values, indent + "  ");
    if (lines.empty()) lines = "\n" + indent + "  ";
    lines.replace(lines.find_first_not_of('\n') + indent.size(), 1, "-");
    text += lines;
  }
  return text;
}

/// A line for each value, each behind a line break; what is inside of one is indented.
std::string indented_lines(const std::vector<AttributeValue>& values, const std::string& indent) {
  std::string text;
  for (const AttributeValue& value : values) {
    text += fmt::format("\n{}{}:", indent, value.name);
    const std::string note = value.answer.note.empty() ? "" : " (" + value.answer.note + ")";
    if (const auto* object = std::get_if<RowObject>(&value.answer.value)) {
      text += note + indented_lines(object->values, indent + "  ");
      continue;
    }
    const auto* entries = std::get_if<std::vector<RowObject>>(&value.answer.value);
    if (entries && !entries->empty()) {
      text += note + entry_lines(*entries, indent + "  ");
      continue;
    }
    const ordered_json shown = answer_for_people(value.answer);
    text += fmt::format(" {}{}", shown.is_null() ? "null" : shown.get<std::string>(), note);
  }
  return text;
}

}  // namespace

ordered_json value_for_people(const RowValue& value) {
  const auto visit = [](const auto& held) -> ordered_json {
    using Held = std::decay_t<decltype(held)>;
    if constexpr (std::is_same_v<Held, std::nullptr_t>)
      return nullptr;
    else if constexpr (std::is_same_v<Held, std::vector<std::string>>)
      return valid_utf8(shorten_text(fmt::format("{}", fmt::join(held, ", ")), kLongestShown));
    else if constexpr (std::is_same_v<Held, std::string>)
      return valid_utf8(shorten_text(held, kLongestShown));
    else if constexpr (!std::is_arithmetic_v<Held>)
      return valid_utf8(shorten_text(
          value_json(held).dump(-1, ' ', false, ordered_json::error_handler_t::replace), kLongestShown));
    else
      return fmt::format("{}", held);
  };
  return std::visit(visit, value);
}

ordered_json answer_for_people(const RowAnswer& answer) {
  ordered_json shown = value_for_people(answer.value);
  if (answer.option && shown.is_string())
    shown = valid_utf8(shorten_text(shown.get<std::string>() + ") " + *answer.option, kLongestShown));
  return shown;
}

std::string values_text(const ExtractedValues& row) {
  const std::string text = indented_lines(row.values, "");
  return text.empty() ? text : text.substr(1);
}

}  // namespace sheaf

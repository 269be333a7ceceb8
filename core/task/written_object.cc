#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "core/engine/stop_rules.h"
#include "core/task/value.h"
#include "core/text/json_parts.h"
#include "core/text/json_reader.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

/// Where a whole member of an object ends: at each comma or line break behind one.
std::vector<size_t> member_ends(std::string_view text) {
  std::vector<size_t> ends;
  bool has_key = false;
  char last = 0;  // what stands before, spaces and strings apart
  scan_json(text, [&](size_t i, int64_t depth) {
    const char c = text[i];
    if ((c == ',' || c == '\n') && depth == 1 && has_key && last != ':') ends.push_back(i);
    if (depth == 1 && (c == ',' || c == ':')) has_key = c == ':';
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') last = c;
  });
  return ends;
}

/// Where the JSON string that the text begins with ends.
size_t string_end(std::string_view text) {
  size_t at = 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

/// The whole entries of a list that was cut or breaks off: "[{…}, {…}" of "[{…}, {…}, {".
std::string whole_entries(std::string_view list) {
  size_t end = 1;
  scan_json(list, [&](size_t i, int64_t depth) {
    if (list[i] == '}' && depth == 1) end = i + 1;
  });
  return std::string(list.substr(0, end)) + ']';
}

/// The value of a key in the part of an object that cannot be read; empty: it is another key's.
std::string_view broken_value(const WrittenObject& object, std::string_view name) {
  const std::string_view text = object.broken;
  if (!text.starts_with('"')) return {};
  const size_t key = string_end(text);
  const size_t colon = text.find(':', std::min(key, text.size()));
  if (colon == std::string_view::npos) return {};
  const nlohmann::json read = read_json(text.substr(0, key));
  return read.is_string() && read.get<std::string>() == name ? trim(text.substr(colon + 1))
                                                             : std::string_view();
}

RowObject read_fields(const std::vector<Attribute>& fields, std::string_view text) {
  const WrittenObject inner = read_object(text.substr(1));
  RowObject object;
  for (const Attribute& field : fields)
    object.values.push_back({field.name, read_member(field, inner, false)});
  return object;
}

RowAnswer read_nested(const Attribute& attribute, std::string_view text) {
  const bool list = attribute.type == ValueType::entries;
  if (text == "null") {
    RowAnswer none;
    if (list) none.value = std::vector<RowObject>();
    if (list) hold_limits(attribute, none);
    return none;
  }
  if (!list) {
    if (!text.starts_with('{')) return {nullptr, "not an object: " + in_quotes(text)};
    return {read_fields(attribute.fields, text)};
  }
  // One entry is often written without the list around it.
  const bool alone = text.starts_with('{');
  if (!alone && !text.starts_with('[')) return {nullptr, "not a list of objects: " + in_quotes(text)};
  const auto parts = alone ? std::vector{text} : parts_of(text.substr(1, text.size() - 2));
  std::vector<RowObject> entries;
  for (const std::string_view part : parts) {
    const std::string_view entry = trim(part);
    if (!entry.starts_with('{')) return {nullptr, "not a list of objects: " + in_quotes(text)};
    if (std::cmp_less(entries.size(), attribute.max_entries))
      entries.push_back(read_fields(attribute.fields, entry));
  }
  RowAnswer out{std::move(entries)};
  if (std::cmp_greater(parts.size(), attribute.max_entries)) out.note = left_out(attribute, parts.size());
  hold_limits(attribute, out);
  return out;
}

}  // namespace

std::string left_out(const Attribute& list, size_t count) {
  return fmt::format("{} entries are listed; those after the first {} are left out (max_entries)", count,
                     list.max_entries);
}

WrittenObject read_object(std::string_view written) {
  std::string text = "{" + valid_utf8(written);
  const size_t end = object_end(std::string_view(text).substr(1));
  if (end != std::string::npos) text.resize(end + 1);
  WrittenObject object;
  object.whole = read_json(text).is_object();
  if (!object.whole) {
    // Behind the first mistake no end is one, before it all are.
    const std::vector<size_t> ends = member_ends(text);
    const auto good = std::partition_point(ends.begin(), ends.end(), [&](size_t cut) {
      return !read_json(text.substr(0, cut) + "}").is_discarded();
    });
    if (good == ends.begin()) {
      object.broken = trim(std::string_view(text).substr(1));
      return object;
    }
    const size_t last = *std::prev(good);
    object.broken = trim(std::string_view(text).substr(last + 1));
    text.resize(last);
    text += '}';
    if (!read_json(text).is_object()) return object;
  }
  for (const std::string_view member : parts_of(trim(text).substr(1, trim(text).size() - 2))) {
    const std::string_view from = trim(member);
    const size_t key = string_end(from);
    object.members.emplace_back(read_json(from.substr(0, key)).get<std::string>(),
                                trim(from.substr(from.find(':', key) + 1)));
  }
  return object;
}

RowAnswer read_member(const Attribute& attribute, const WrittenObject& object, bool cut) {
  const std::string* found = nullptr;
  for (const auto& [key, text] : object.members)
    if (key == attribute.name) found = &text;
  for (const auto& [key, text] : object.members)
    if (!found && same_letters(trim(key), trim(attribute.name))) found = &text;
  // What is in an object is JSON already.
  if (found) return attribute.nested() ? read_nested(attribute, *found) : read_json_value(attribute, *found);
  const std::string note = object.whole ? "the model left it out"
                           : cut        ? kCutBefore
                                        : "the answer cannot be read as far as this value";
  if (attribute.type == ValueType::entries)
    if (const std::string_view begun = broken_value(object, attribute.name); begun.starts_with('[')) {
      const std::string entries = whole_entries(begun);
      if (!read_json(entries).is_discarded()) {
        RowAnswer read = read_nested(attribute, entries);
        const bool kept = !std::holds_alternative<std::nullptr_t>(read.value);
        read.note = std::string(cut ? "cut at the length limit" : "the list cannot be read to its end") +
                    (kept ? "" : "; " + read.note);
        return read;
      }
    }
  return {nullptr, note};
}

}  // namespace sheaf

#include "core/task/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/ranges.h>

#include "core/engine/stop_rules.h"
#include "core/text/json_reader.h"

namespace sheaf {
namespace {

using nlohmann::json;

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

bool same_letters(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

/// Words that models write where null was meant.
bool stands_for_null(std::string_view text) {
  for (std::string_view word : {"", "none", "n/a", "unknown", "not specified", "not mentioned", "-"})
    if (same_letters(trim(text), word)) return true;
  return false;
}

std::string in_quotes(std::string_view text) {
  return '"' + valid_utf8(text.substr(0, 60)) + '"';
}

RowAnswer null_for(std::string_view text) {
  return {nullptr, in_quotes(trim(text)) + " was read as null"};
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The one number in a text: "12 oz" is 12, "1,200" is 1200; null where there is none, or where it is not
/// clear which: "1,5", "8,9,10", "1/2", "10-20".
RowValue only_number(std::string_view text) {
  const size_t at = text.find_first_of("0123456789");
  if (at == std::string_view::npos) return nullptr;
  std::string digits;
  // A minus counts at the start of a word only: "X-5" is no negative number.
  const size_t before = at > 0 && text[at - 1] == '.' ? at - 1 : at;
  if (before > 0 && text[before - 1] == '-' &&
      (before == 1 || text[before - 2] == ' ' || text[before - 2] == '('))
    digits = "-";
  if (before < at) digits += "0.";
  size_t i = at;
  const auto thousands = [&](size_t comma) {
    return comma + 3 < text.size() && is_digit(text[comma + 1]) && is_digit(text[comma + 2]) &&
           is_digit(text[comma + 3]) && (comma + 4 == text.size() || !is_digit(text[comma + 4]));
  };
  for (; i < text.size(); ++i) {
    const bool digit_next = i + 1 < text.size() && is_digit(text[i + 1]);
    if (is_digit(text[i]))
      digits += text[i];
    else if (text[i] == '.' && digit_next && digits.find('.') == std::string::npos)
      digits += text[i];
    else if (!(text[i] == ',' && thousands(i)))
      break;
  }
  const bool goes_on = i + 1 < text.size() && is_digit(text[i + 1]) &&
                       std::string_view(",./-eE").find(text[i]) != std::string_view::npos;
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (goes_on || error != std::errc() || !std::isfinite(number)) return nullptr;
  if (number == std::floor(number) && std::abs(number) < 9e15) return static_cast<int64_t>(number);
  return number;
}

std::string text_of(const json& part) {
  return part.is_string() ? part.get<std::string>() : part.dump();
}

/// The texts of a list, or of a single text or number; none where something else is in it.
std::optional<std::vector<std::string>> texts_of(const json& raw) {
  std::vector<std::string> texts;
  for (const json& part : raw.is_array() ? raw : json::array({raw})) {
    if (!part.is_string() && !part.is_number()) return std::nullopt;
    const std::string text = text_of(part);
    if (!same_letters(trim(text), "null") && !stands_for_null(text)) texts.push_back(valid_utf8(trim(text)));
  }
  return texts;
}

/// Where a whole member of an object ends: at each comma or line break behind one.
std::vector<size_t> member_ends(std::string_view text) {
  std::vector<size_t> ends;
  int64_t depth = 0;
  bool quoted = false, has_key = false;
  char last = 0;  // what stands before, spaces apart
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if ((c == ',' || c == '\n') && depth == 1 && has_key && last != ':') ends.push_back(i);
    if (depth == 1 && (c == ',' || c == ':')) has_key = c == ':';
    if (c == '"') quoted = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') last = c;
  }
  return ends;
}

/// What is left of a list that was cut short.
json closed_list(std::string_view text) {
  std::string open(text);
  open.erase(open.find_last_not_of(" ,") + 1);
  for (const char* ending : {"]", "\"]"}) {
    json list = read_json(open + ending);
    if (!list.is_discarded()) return list;
  }
  return nullptr;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  // The JSON library's replacing writer is the one UTF-8 checker; reading its output back gives clean text.
  const std::string written = json(std::string(text)).dump(-1, ' ', false, json::error_handler_t::replace);
  return read_json(written).get<std::string>();
}

RowAnswer read_value(const Attribute& attribute, std::string_view text, bool cut) {
  text = text.substr(0, text.find('\n'));
  const size_t end = literal_end(text);
  text = trim(text.substr(0, end));
  if (text.empty()) return {nullptr, cut ? "cut at the length limit" : "the model wrote nothing"};
  const std::string broken =
      cut && end == std::string_view::npos ? "cut at the length limit" : "not written as JSON";

  json parsed = read_json(text);
  if (!parsed.is_discarded()) return coerce_value(attribute, parsed);
  if (text.front() == '{') return {nullptr, "an object: " + in_quotes(text)};
  if (text.front() == '[') {
    parsed = closed_list(text);
    if (parsed.is_null()) return {nullptr, "not a list: " + in_quotes(text)};
  } else {
    // A string that was cut or holds a bad escape, or a text without quotes.
    if (text.front() == '"') text.remove_prefix(1);
    if (!text.empty() && text.back() == '"') text.remove_suffix(1);
    parsed = valid_utf8(trim(text));
  }
  RowAnswer value = coerce_value(attribute, parsed);
  if (value.note.empty()) value.note = broken;
  return value;
}

json read_object(std::string_view written) {
  std::string text = "{" + valid_utf8(written);
  const size_t end = object_end(std::string_view(text).substr(1));
  if (end != std::string::npos) text.resize(end + 1);
  json object = read_json(text);
  if (object.is_discarded()) {
    // Behind the first mistake no end is one, before it all are.
    const std::vector<size_t> ends = member_ends(text);
    const auto good = std::partition_point(ends.begin(), ends.end(), [&](size_t cut) {
      return !read_json(text.substr(0, cut) + "}").is_discarded();
    });
    if (good == ends.begin()) return json::object();
    object = read_json(text.substr(0, *std::prev(good)) + "}");
  }
  return object.is_object() ? object : json::object();
}

RowAnswer read_line(std::string_view text, bool cut) {
  text = trim(text.substr(0, text.find('\n')));
  if (text.empty()) return {nullptr, "the model wrote nothing"};
  const std::string note = cut ? "cut at the length limit" : "";
  if (same_letters(text, "null")) return {nullptr, note};
  return {valid_utf8(text), note};
}

RowAnswer no_answer() {
  return {nullptr, "the model gave no answer"};
}

RowAnswer coerce_value(const Attribute& attribute, const json& raw) {
  const std::string text =
      raw.is_string() ? raw.get<std::string>() : raw.dump(-1, ' ', false, json::error_handler_t::replace);
  // An option may itself be "none", so options come before the words for null.
  if (attribute.type == ValueType::enumeration)
    for (const std::string& option : attribute.options)
      if (same_letters(trim(text), option)) return {option};
  if (raw.is_null() || (raw.is_string() && same_letters(trim(text), "null"))) return {};
  if (raw.is_string() && stands_for_null(text)) return null_for(text);

  switch (attribute.type) {
    case ValueType::text: {
      const auto texts = texts_of(raw);
      if (!texts) return {nullptr, "not a text: " + in_quotes(text)};
      if (texts->empty()) return null_for(text);
      return {fmt::format("{}", fmt::join(*texts, ", "))};
    }
    case ValueType::number: {
      if (raw.is_number()) return {row_number(raw)};
      RowValue number = raw.is_string() ? only_number(text) : nullptr;
      if (!is_found(number)) return {nullptr, "not a number: " + in_quotes(text)};
      return {std::move(number)};
    }
    case ValueType::enumeration:
      return {nullptr, "not one of the options: " + in_quotes(text)};
    case ValueType::list: {
      auto texts = texts_of(raw);
      if (!texts) return {nullptr, "not a list of texts: " + in_quotes(text)};
      if (texts->empty()) return raw.is_array() && raw.empty() ? RowAnswer{} : null_for(text);
      return {std::move(*texts)};
    }
  }
  return {nullptr, "unknown type"};
}

}  // namespace sheaf

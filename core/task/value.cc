#include "core/task/value.h"

#include <charconv>
#include <cmath>

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
bool means_nothing(std::string_view text) {
  for (std::string_view word : {"", "null", "none", "n/a", "na", "unknown", "not specified", "not mentioned", "-"})
    if (same_letters(trim(text), word)) return true;
  return false;
}

/// The first number in a text: "12 oz" is 12, "1,000" is 1000.
json first_number(std::string_view text) {
  const size_t at = text.find_first_of("0123456789");
  if (at == std::string_view::npos) return nullptr;
  std::string digits;
  if (at > 0 && text[at - 1] == '-') digits = "-";
  if (at > 0 && text[at - 1] == '.') digits += "0.";
  for (size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    const bool digit_next = i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9';
    if (c >= '0' && c <= '9')
      digits += c;
    else if (c == '.' && digit_next && digits.find('.') == std::string::npos)
      digits += c;
    else if (!(c == ',' && digit_next))
      break;
  }
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return nullptr;
  if (number == std::floor(number) && std::abs(number) < 9e15) return static_cast<int64_t>(number);
  return number;
}

Value text_value(std::string_view text) {
  if (means_nothing(text)) return {nullptr, {}};
  return {valid_utf8(trim(text)), {}};
}

std::string in_quotes(std::string_view text) { return '"' + valid_utf8(text.substr(0, 60)) + '"'; }

/// Strips what JSON would have around the text when it was not good JSON: quotes and a comma.
std::string_view bare(std::string_view text) {
  text = trim(text);
  if (!text.empty() && text.back() == ',') text = trim(text.substr(0, text.size() - 1));
  if (!text.empty() && text.front() == '"') text.remove_prefix(1);
  if (!text.empty() && text.back() == '"') text.remove_suffix(1);
  return trim(text);
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  // The JSON library's replacing writer is the one UTF-8 checker; reading its output back gives clean text.
  const std::string written = json(std::string(text)).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(written).get<std::string>();
}

Value read_value(const Attribute& attribute, std::string_view text, bool cut) {
  text = trim(text.substr(0, text.find('\n')));
  if (!text.empty() && text.back() == ',') text = trim(text.substr(0, text.size() - 1));
  if (text.empty()) return {nullptr, cut ? "cut at the length limit" : "the model wrote nothing"};

  const json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_discarded()) return coerce_value(attribute, parsed);

  // Not a JSON literal: a value cut short, a stray word after the closing quote, or no quotes at all.
  std::string_view rest = text;
  if (rest.front() == '"') {
    const size_t close = rest.find('"', 1);
    rest = close == std::string_view::npos ? rest.substr(1) : rest.substr(1, close - 1);
  } else if (rest.front() == '{') {
    return {nullptr, "an object: " + in_quotes(text)};
  } else if (rest.front() == '[') {
    std::string closed(rest);
    closed.erase(closed.find_last_not_of(" ,") + 1);
    for (std::string_view ending : {"]", "\"]"}) {
      const json list = json::parse(closed + std::string(ending), nullptr, false);
      if (list.is_discarded()) continue;
      Value value = coerce_value(attribute, list);
      if (value.note.empty()) value.note = cut ? "cut at the length limit" : "the list was not closed";
      return value;
    }
  }
  Value value = coerce_value(attribute, valid_utf8(bare(rest)));
  if (value.note.empty()) value.note = cut ? "cut at the length limit" : "not written as JSON";
  return value;
}

Value coerce_value(const Attribute& attribute, const json& raw) {
  if (raw.is_null()) return {nullptr, {}};
  if (raw.is_string() && means_nothing(raw.get_ref<const std::string&>())) return {nullptr, {}};
  const std::string text = raw.is_string() ? raw.get<std::string>() : raw.dump(-1, ' ', false, json::error_handler_t::replace);

  switch (attribute.type) {
    case ValueType::text:
      if (raw.is_string() || raw.is_number()) return text_value(text);
      if (raw.is_array() && !raw.empty()) {
        std::string joined;
        for (const json& part : raw) {
          if (!part.is_string() && !part.is_number()) return {nullptr, "not a text: " + in_quotes(text)};
          joined += (joined.empty() ? "" : ", ") + (part.is_string() ? part.get<std::string>() : part.dump());
        }
        return text_value(joined);
      }
      return {nullptr, "not a text: " + in_quotes(text)};
    case ValueType::number: {
      if (raw.is_number()) return {raw, {}};
      json number = raw.is_string() ? first_number(text) : json();
      if (number.is_null()) return {nullptr, "not a number: " + in_quotes(text)};
      return {std::move(number), {}};
    }
    case ValueType::enumeration:
      for (const std::string& option : attribute.options)
        if (same_letters(trim(text), option)) return {option, {}};
      return {nullptr, "not one of the options: " + in_quotes(text)};
    case ValueType::list: {
      json list = json::array();
      for (const json& part : raw.is_array() ? raw : json::array({raw})) {
        if (!part.is_string() && !part.is_number()) return {nullptr, "not a list of texts: " + in_quotes(text)};
        Value one = text_value(part.is_string() ? part.get<std::string>() : part.dump());
        if (!one.json.is_null()) list.push_back(std::move(one.json));
      }
      if (list.empty()) return {nullptr, {}};
      return {std::move(list), {}};
    }
  }
  return {nullptr, "unknown type"};
}

}  // namespace sheaf

#include "core/task/value.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <fmt/ranges.h>
#include <set>

#include "core/engine/stop_rules.h"
#include "core/text/date_text.h"
#include "core/text/json_parts.h"
#include "core/text/json_reader.h"
#include "core/text/read_number.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr const char* kCut = "cut at the length limit";

/// Words that models write where null was meant.
bool stands_for_null(std::string_view text) {
  for (std::string_view word : {"", "none", "n/a", "unknown", "not specified", "not mentioned", "-"})
    if (same_letters(trim(text), word)) return true;
  return false;
}

RowAnswer null_for(std::string_view text) {
  return {nullptr, in_quotes(trim(text)) + " was read as null"};
}

/// A JSON literal as the model wrote it: numbers keep their letters.
struct Literal {
  enum class Kind { null, text, number, list, other };
  Kind kind = Kind::other;
  std::string text = {};            ///< of a text what is inside its quotes, otherwise as written
  std::vector<Literal> parts = {};  ///< of a list
};

/// Nothing where the text is not JSON.
std::optional<Literal> read_literal(std::string_view text) {
  text = trim(text);
  const json parsed = read_json(text);
  if (parsed.is_discarded()) return std::nullopt;
  if (parsed.is_null()) return Literal{Literal::Kind::null};
  if (parsed.is_string()) return Literal{Literal::Kind::text, parsed.get<std::string>()};
  if (parsed.is_number()) return Literal{Literal::Kind::number, std::string(text)};
  Literal literal{Literal::Kind::other, std::string(text)};
  if (!parsed.is_array()) return literal;
  literal.kind = Literal::Kind::list;
  for (const std::string_view part : parts_of(text.substr(1, text.size() - 2))) {
    // A list inside of it is not looked into: it is no value of an attribute.
    if (const char first = trim(part).front(); first == '[' || first == '{')
      literal.parts.push_back({Literal::Kind::other, std::string(part)});
    else
      literal.parts.push_back(*read_literal(part));
  }
  return literal;
}

/// The texts of a list, or of a single text or number; none where something else is in it.
std::optional<std::vector<std::string>> texts_of(const Literal& literal) {
  std::vector<std::string> texts;
  for (const Literal& part : literal.kind == Literal::Kind::list ? literal.parts : std::vector{literal}) {
    if (part.kind == Literal::Kind::null) continue;
    if (part.kind != Literal::Kind::text && part.kind != Literal::Kind::number) return std::nullopt;
    if (!same_letters(trim(part.text), "null") && !stands_for_null(part.text))
      texts.push_back(valid_utf8(trim(part.text)));
  }
  return texts;
}

/// "red, blue; green" as three texts.
std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(", ", begin), text.find(';', begin));
    end = std::min(end, text.size());
    if (const std::string_view part = trim(text.substr(begin, end - begin)); !part.empty())
      parts.emplace_back(part);
    begin = end + 1;
  }
  return parts;
}

/// Whether a number of JSON may be one with thousands that was copied as it stands: 1.200
bool may_be_thousands(std::string_view number) {
  if (number.starts_with('-')) number.remove_prefix(1);
  const size_t point = number.find('.');
  return point >= 1 && point <= 3 && number.size() == point + 4 && number[0] != '0' &&
         number.find_first_not_of("0123456789", point + 1) == std::string_view::npos;
}

RowAnswer read_number(const Attribute& attribute, const Literal& literal) {
  const bool plain = literal.kind == Literal::Kind::number &&
                     (attribute.locale.decimal == Locale::Decimal::point || !may_be_thousands(literal.text));
  if (plain) {
    const RowValue number = row_number(read_json(literal.text));
    if (is_found(number)) return {number};
  }
  if (plain || (literal.kind != Literal::Kind::text && literal.kind != Literal::Kind::number))
    return {nullptr, "not a number: " + in_quotes(literal.text)};
  const NumberText number = read_number_text(literal.text, attribute.unit, attribute.locale);
  if (number.trouble != NumberText::Trouble::none) {
    const std::string troubles[] = {"",
                                    "not a number",
                                    "not clear which number is meant",
                                    "more than one number",
                                    "not in " + attribute.unit,
                                    "ambiguous without input.locale"};
    return {nullptr, troubles[static_cast<size_t>(number.trouble)] + ": " + in_quotes(literal.text)};
  }
  const double value = *number.value;
  if (value == std::floor(value) && std::abs(value) < 9e15) return {static_cast<int64_t>(value)};
  return {value};
}

RowAnswer read_integer(const Attribute& attribute, const Literal& literal) {
  RowAnswer number = read_number(attribute, literal);
  const auto* fraction = std::get_if<double>(&number.value);
  if (!fraction) return number;
  if (*fraction == std::floor(*fraction) && std::abs(*fraction) < 9e15)
    return {static_cast<int64_t>(*fraction)};
  return {nullptr, "not a whole number: " + in_quotes(literal.text)};
}

RowAnswer read_boolean(std::string_view text) {
  for (const std::string_view word :
       {"true", "yes", "ja", "oui", "sí", "SÍ", "si", "sì", "sim", "wahr", "vrai"})
    if (same_letters(text, word)) return {true};
  for (const std::string_view word : {"false", "no", "nein", "non", "nee", "não", "falsch", "faux"})
    if (same_letters(text, word)) return {false};
  return {nullptr, "neither true nor false: " + in_quotes(text)};
}

RowAnswer read_date(const Attribute& attribute, std::string_view text) {
  const DateText date = read_date_text(text, attribute.locale);
  if (date.trouble == DateText::Trouble::none) return {date.value};
  return {nullptr,
          (date.trouble == DateText::Trouble::unclear ? "not clear which date is meant: " : "not a date: ") +
              in_quotes(text)};
}

/// Whether clocks show it: "23:59", "23:59:59", and what stands after it as an offset: "Z", "+02:00".
bool is_on_the_clock(std::string_view text) {
  constexpr int kMost[] = {23, 59, 59};
  for (int part = 0; text.size() >= 2; ++part) {
    if (part == 3 || (text[0] - '0') * 10 + (text[1] - '0') > kMost[part]) return false;
    text.remove_prefix(2);
    if (text.empty() || text[0] == 'Z') return true;
    if (text[0] != ':') part = -1;  // the offset
    text.remove_prefix(1);
  }
  return true;
}

/// What is wrong with a text that has the form of a time; empty: nothing.
std::string_view wrong_moment(Attribute::Moment moment, std::string_view text) {
  constexpr size_t kDate = 10;  // 2026-03-01
  if (moment == Attribute::Moment::any) return {};
  if (moment == Attribute::Moment::date_time) {
    if (text.size() <= kDate || read_date_text(text.substr(0, kDate)).value != text.substr(0, kDate))
      return "not a day of the calendar";
    text.remove_prefix(kDate + 1);
  }
  return is_on_the_clock(text) ? "" : "not a time of day";
}

RowAnswer read_pattern(const Attribute& attribute, std::string_view text) {
  if (!attribute.pattern || !attribute.pattern->matches(text))
    return {nullptr, "does not match the pattern: " + in_quotes(text)};
  if (const std::string_view wrong = wrong_moment(attribute.moment, text); !wrong.empty())
    return {nullptr, fmt::format("{}: {}", wrong, in_quotes(text))};
  return {std::string(text)};
}

/// The option that was written: to the letter, or the only one that differs in capital letters.
RowAnswer read_option(const Attribute& attribute, std::string_view text) {
  const std::string* found = nullptr;
  for (const std::string& option : attribute.options) {
    if (trim(option) == text) return {option};
    if (!same_letters(trim(option), text)) continue;
    if (found) return {nullptr, fmt::format("{} or {}: {}", *found, option, in_quotes(text))};
    found = &option;
  }
  if (found) return {*found};
  return {nullptr, "not one of the options: " + in_quotes(text)};
}

/// What the value breaks of the attribute's limits; empty: nothing.
std::string broken_limit(const ValueLimits& limits, const RowValue& value) {
  const auto check_length = [](double length, const std::optional<double>& least,
                               const std::optional<double>& most, std::string_view what) -> std::string {
    if (least && length < *least) return fmt::format("fewer than {} {}", *least, what);
    if (most && length > *most) return fmt::format("more than {} {}", *most, what);
    return {};
  };
  const auto check = [&](const auto& held) -> std::string {
    using Held = std::decay_t<decltype(held)>;
    if constexpr (std::is_same_v<Held, std::string>) {
      return check_length(static_cast<double>(count_characters(held)), limits.shortest, limits.longest,
                          "characters");
    } else if constexpr (std::is_same_v<Held, std::vector<std::string>>) {
      if (limits.unique && std::set<std::string>(held.begin(), held.end()).size() < held.size())
        return "an entry twice";
      return check_length(static_cast<double>(held.size()), limits.fewest, limits.most_items, "entries");
    } else if constexpr (std::is_same_v<Held, std::vector<RowObject>>) {
      std::set<std::string> seen;
      for (const RowObject& entry : held)
        if (limits.unique && !seen.insert(value_json(RowObject(entry)).dump()).second)
          return "an entry twice";
      return check_length(static_cast<double>(held.size()), limits.fewest, limits.most_items, "entries");
    } else if constexpr (std::is_arithmetic_v<Held> && !std::is_same_v<Held, bool>) {
      const auto number = static_cast<double>(held);
      if (limits.least && number < *limits.least) return fmt::format("less than {}", *limits.least);
      if (limits.most && number > *limits.most) return fmt::format("more than {}", *limits.most);
      if (limits.above && number <= *limits.above) return fmt::format("not above {}", *limits.above);
      if (limits.below && number >= *limits.below) return fmt::format("not below {}", *limits.below);
      if (const auto step = limits.multiple_of) {
        // What binary fractions leave of 0.01 grows with the number.
        const double unsure = std::max(1e-9 * *step, 4 * DBL_EPSILON * std::abs(number));
        if (std::abs(std::remainder(number, *step)) > unsure)
          return fmt::format("not a multiple of {}", *step);
      }
    }
    return {};
  };
  return std::visit(check, value);
}

RowAnswer typed_value(const Attribute& attribute, const Literal& literal) {
  using Kind = Literal::Kind;
  if (literal.kind == Kind::null) return {};
  const std::string_view text = trim(literal.text);
  // An option may itself be "none" or "null", so options come before the words for null.
  if (attribute.type == ValueType::enumeration && literal.kind == Kind::text)
    if (RowAnswer option = read_option(attribute, text); is_found(option.value)) return option;
  if (literal.kind == Kind::text && same_letters(text, "null")) return {};
  if (literal.kind == Kind::text && stands_for_null(text)) return null_for(text);

  switch (attribute.type) {
    case ValueType::text:
    case ValueType::span: {
      const auto texts = texts_of(literal);
      if (!texts) return {nullptr, "not a text: " + in_quotes(text)};
      if (texts->empty()) return null_for(text);
      return {fmt::format("{}", fmt::join(*texts, ", "))};
    }
    case ValueType::number:
      return read_number(attribute, literal);
    case ValueType::integer:
      return read_integer(attribute, literal);
    case ValueType::boolean:
      return read_boolean(text);
    case ValueType::date:
      return read_date(attribute, text);
    case ValueType::pattern:
      return read_pattern(attribute, text);
    case ValueType::enumeration:
      return read_option(attribute, text);
    case ValueType::list: {
      auto texts = texts_of(literal);
      if (!texts) return {nullptr, "not a list of texts: " + in_quotes(text)};
      if (literal.kind == Kind::text) texts = split_list(texts->empty() ? "" : texts->front());
      if (texts->empty())
        return literal.kind == Kind::list && literal.parts.empty() ? RowAnswer{} : null_for(text);
      return {std::move(*texts)};
    }
    case ValueType::object:
    case ValueType::entries:
      break;  // what they hold is read one by one
  }
  return {nullptr, "not a plain value: " + in_quotes(text)};
}

RowAnswer value_of(const Attribute& attribute, const Literal& literal) {
  RowAnswer value = typed_value(attribute, literal);
  if (const std::string broken = broken_limit(attribute.limits, value.value); !broken.empty())
    return {nullptr, broken + ": " + in_quotes(literal.text)};
  return value;
}

/// What is left of a list that was cut short.
std::optional<Literal> read_open_list(std::string_view text) {
  std::string open(text);
  open.erase(open.find_last_not_of(" ,") + 1);
  for (const char* ending : {"]", "\"]"})
    if (auto list = read_literal(open + ending)) return list;
  return std::nullopt;
}

/// What is left of a string that was cut short; nothing where it holds something else that is not JSON.
std::optional<Literal> read_open_string(std::string_view text) {
  for (size_t at = 1; at < text.size();) {
    const size_t bytes = text[at] != '\\' ? 1 : text.substr(at).starts_with("\\u") ? 6 : 2;
    if (at + bytes > text.size()) text = text.substr(0, at);  // an escape that is not whole
    at += bytes;
  }
  return read_literal(valid_utf8(text) + '"');
}

}  // namespace

std::string in_quotes(std::string_view text) {
  return '"' + valid_utf8(text.substr(0, 60)) + '"';
}

void hold_limits(const Attribute& attribute, RowAnswer& answer) {
  const std::string broken = broken_limit(attribute.limits, answer.value);
  if (broken.empty()) return;
  answer.value = nullptr;
  answer.note = broken + (answer.note.empty() ? "" : "; ") + answer.note;
}

RowAnswer read_value(const Attribute& attribute, std::string_view text, bool cut) {
  const size_t line = text.find('\n');
  text = text.substr(0, line);
  const size_t end = literal_end(text);
  text = trim(text.substr(0, end));
  const bool comma = end == std::string_view::npos && !text.empty() && text.back() == ',';
  if (comma) text = trim(text.substr(0, text.size() - 1));
  if (text.empty()) return {nullptr, cut ? kCut : "the model wrote nothing"};
  const bool open = cut && end == std::string_view::npos && line == std::string_view::npos && !comma;
  if (const auto literal = read_literal(text)) {
    RowAnswer value = value_of(attribute, *literal);
    // More digits could have followed.
    if (open && literal->kind == Literal::Kind::number) value.note = kCut;
    return value;
  }
  if (text.front() == '{') return {nullptr, "an object: " + in_quotes(text)};
  RowAnswer value;
  if (text.front() == '[') {
    const auto list = read_open_list(text);
    if (!list) return {nullptr, "not a list: " + in_quotes(text)};
    value = value_of(attribute, *list);
  } else if (const auto begun = text.front() == '"' ? read_open_string(text) : std::nullopt) {
    value = value_of(attribute, *begun);
  } else {
    // A string that holds a bad escape or a quote of its own, or a text without quotes.
    if (text.front() == '"') text.remove_prefix(1);
    if (!text.empty() && text.back() == '"') text.remove_suffix(1);
    value = read_text_value(attribute, text);
  }
  // What is wrong with a value that was cut is that.
  if (open)
    value.note = kCut;
  else if (value.note.empty())
    value.note = "not written as JSON";
  return value;
}

std::string read_string(std::string_view text) {
  const std::string written = '"' + std::string(text.substr(0, text.find('\n')));
  const size_t end = literal_end(written);
  const std::string_view literal = std::string_view(written).substr(0, end);
  auto read = end == std::string::npos ? read_open_string(literal) : read_literal(literal);
  if (!read) {  // a bad escape, or a quote of its own
    std::string_view inside = literal.substr(1);
    if (end != std::string::npos) inside.remove_suffix(1);
    return valid_utf8(inside);
  }
  return read->text;
}

RowAnswer read_text_value(const Attribute& attribute, std::string_view text) {
  return value_of(attribute, {Literal::Kind::text, valid_utf8(trim(text))});
}

RowAnswer read_json_value(const Attribute& attribute, std::string_view text) {
  const auto literal = read_literal(text);
  return literal ? value_of(attribute, *literal) : RowAnswer{nullptr, "not JSON: " + in_quotes(text)};
}

RowAnswer read_line(std::string_view text, bool cut) {
  return read_lines(text.substr(0, text.find('\n')), cut);
}

RowAnswer read_lines(std::string_view text, bool cut) {
  text = trim(text);
  if (text.empty()) return {nullptr, "the model wrote nothing"};
  const std::string note = cut ? kCut : "";
  if (same_letters(text, "null")) return {nullptr, note};
  return {valid_utf8(text), note};
}

bool is_cut(const RowAnswer& answer) {
  return answer.note == kCut || answer.note == kCutBefore;
}

void drop_cut_value(RowAnswer& answer) {
  if (is_cut(answer)) answer.value = nullptr;
}

bool has_sense_when_cut(ValueType type) {
  return type != ValueType::number && type != ValueType::integer && type != ValueType::date;
}

RowAnswer no_answer() {
  return {nullptr, "the model gave no answer"};
}

}  // namespace sheaf

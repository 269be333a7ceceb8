#include "core/task/gold.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/random_stream.h"
#include "core/task/find_text.h"
#include "core/task/value.h"
#include "core/text/json_reader.h"
#include "core/text/spelling.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr size_t kNamed = 3, kLongestShown = 60;

bool is_empty(const json& gold) {
  return gold.is_null() || (gold.is_string() && gold.get_ref<const std::string&>().empty());
}

bool is_absent(const json& gold) {
  return is_empty(gold) || gold == "n/a";
}

json as_list(const json& gold) {
  return gold.is_array() ? gold : json::array({gold});
}

std::string literal(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string list_literal(const json& gold) {
  std::string out = "[";
  for (const json& part : gold) out += (out.size() > 1 ? ", " : "") + literal(part);
  return out + "]";
}

/// The parts of a list as texts; a text is split as an answer of the model is.
std::optional<json> list_gold(const Attribute& attribute, json gold) {
  if (gold.is_string()) {
    const auto& text = gold.get_ref<const std::string&>();
    const json written = text.starts_with('[') ? read_json(text) : json();
    if (written.is_array()) {
      gold = written;
    } else {
      const RowAnswer read = read_text_value(attribute, text);
      const auto* parts = std::get_if<std::vector<std::string>>(&read.value);
      return parts ? std::optional<json>(*parts) : std::nullopt;
    }
  }
  json texts = json::array();
  for (const json& part : as_list(gold)) {
    if (part.is_structured()) return std::nullopt;
    if (!is_empty(part)) texts.push_back(gold_text(part));
  }
  return texts.empty() || is_absent(texts.front()) ? json() : texts;
}

/// Where the document holds the text on one line, without the blanks around it.
std::optional<TextPlace> find_span(const Record& record, std::string_view text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  text = text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
  if (std::ranges::any_of(text, is_control)) return std::nullopt;
  return find_text(record, text);
}

}  // namespace

std::string gold_text(const json& gold) {
  return gold.is_string() ? gold.get<std::string>() : gold.dump();
}

std::optional<json> typed_gold(const Attribute& attribute, const json& gold) {
  if (gold.is_object()) return std::nullopt;
  const bool an_option = gold.is_string() && std::ranges::find(attribute.options, gold.get<std::string>()) !=
                                                 attribute.options.end();
  if (is_absent(gold) && !an_option) return json();
  if (attribute.type == ValueType::list) return list_gold(attribute, gold);
  if (gold.is_array()) return std::nullopt;
  const std::string text = gold_text(gold);
  if (attribute.type == ValueType::text || attribute.type == ValueType::span) return text;
  Attribute as_gold = attribute;
  if (gold.is_number()) as_gold.locale.decimal = Locale::Decimal::point;  // JSON's own
  const RowAnswer read = read_text_value(as_gold, text);
  if (std::holds_alternative<std::nullptr_t>(read.value)) return std::nullopt;
  return json(value_json(read.value));
}

namespace {

/// An object as it is written on one line, without the values that the gold does not say.
std::optional<std::string> write_object(const Attribute& attribute, const json& gold) {
  if (!gold.is_object()) return std::nullopt;
  std::string text;
  for (const Attribute& field : attribute.fields) {
    const auto known = gold.find(field.name);
    const auto value = known == gold.end() ? std::nullopt : write_value(field, *known);
    if (value) text += (text.empty() ? "" : ", ") + literal(field.name) + ": " + *value;
  }
  return "{" + text + "}";
}

std::optional<std::string> write_entries(const Attribute& attribute, const json& gold) {
  std::string text;
  for (const json& entry : gold.is_array() ? gold : json::array({gold})) {
    const auto object = write_object(attribute, entry);
    if (!object) return std::nullopt;
    text += (text.empty() ? "" : ", ") + *object;
  }
  return "[" + text + "]";
}

}  // namespace

std::optional<std::string> write_value(const Attribute& attribute, const json& gold) {
  const bool none = gold.is_null() || (gold.is_array() && gold.empty());
  if (none && (attribute.type == ValueType::object || (attribute.nested() && gold.is_null()))) return "null";
  if (attribute.type == ValueType::object) return write_object(attribute, gold);
  if (attribute.type == ValueType::entries) return write_entries(attribute, gold);
  const bool accepted = gold.is_array() && attribute.type != ValueType::list;
  if (accepted && gold.empty()) return "null";
  const auto value = typed_gold(attribute, accepted ? gold.front() : gold);
  if (!value) return std::nullopt;
  return value->is_array() ? list_literal(*value) : literal(*value);
}

void UnreadableGold::add(const Attribute& attribute, const json& gold) {
  if (++count_ > 1) return;
  const std::string text = gold_text(gold.is_array() && !gold.empty() ? gold.front() : gold);
  first_ = fmt::format("\"{}\" of \"{}\"", shorten_text(text, kLongestShown),
                       shorten_text(attribute.name, kLongestShown));
}

std::string UnreadableGold::notice(const std::string& path, std::string_view fate) const {
  if (count_ == 0) return {};
  return fmt::format("{}: {} that the type of {} attribute does not hold, {}: {}{}", path,
                     counted(count_, "gold value"), count_ == 1 ? "its" : "their", fate, first_,
                     count_ > 1 ? ", \u2026" : "");
}

namespace {

int64_t bind_values(const std::vector<Attribute>& attributes, const Record& record, json& gold) {
  int64_t erased = 0;
  for (const Attribute& attribute : attributes) {
    const auto value = gold.find(attribute.name);
    if (value == gold.end()) continue;
    if (attribute.nested()) {
      if (value->is_object()) erased += bind_values(attribute.fields, record, *value);
      if (value->is_array())
        for (json& entry : *value)
          if (entry.is_object()) erased += bind_values(attribute.fields, record, entry);
      continue;
    }
    if (attribute.type != ValueType::span) continue;
    const json list = as_list(*value);
    if (list.empty() || is_absent(list.front())) continue;
    if (const auto place = find_span(record, gold_text(list.front()))) {
      *value = record.document.substr(place->begin, place->end - place->begin);
    } else {
      gold.erase(value);
      ++erased;
    }
  }
  return erased;
}

}  // namespace

int64_t bind_gold(const Category& category, const Record& record, json& gold) {
  return bind_values(category.attributes, record, gold);
}

void UnknownNames::add(const Category& category, const json& gold) {
  std::vector<std::string> names;
  for (const Attribute& attribute : category.attributes) names.push_back(attribute.name);
  for (const auto& [name, value] : gold.items()) {
    if (std::ranges::find(names, name) != names.end()) continue;
    ++values_;
    std::string shown = fmt::format("\"{}\" of {}", shorten_text(name, kLongestShown), category.name);
    if (const std::string meant = nearest_spelling(name, names); !meant.empty())
      shown += fmt::format(" (did you mean \"{}\"?)", meant);
    if (std::ranges::find(first_, shown) != first_.end()) continue;
    if (first_.size() < kNamed)
      first_.push_back(std::move(shown));
    else
      more_ = true;
  }
}

std::string UnknownNames::notice(const std::string& path) const {
  if (values_ == 0) return {};
  return fmt::format("{}: {} left out, because the category in the schema has no such attribute: {}{}", path,
                     counted(values_, "gold value"), fmt::join(first_, ", "), more_ ? ", …" : "");
}

json shown_json(const ShownQuestion& question) {
  return json::array(
      {question.lot, question.text, question.options, question.answer ? json(*question.answer) : json()});
}

ShownQuestion read_shown(const json& gold) {
  ShownQuestion question{gold.at(0).get<uint64_t>(), gold.at(1).get<std::string>(),
                         gold.at(2).get<std::vector<std::string>>()};
  if (!gold.at(3).is_null()) question.answer = gold.at(3).get<std::string>();
  return question;
}

const std::vector<Example>& Examples::of(std::string_view category) const {
  static const std::vector<Example> none;
  const auto found = by_category.find(category);
  return found == by_category.end() ? none : found->second;
}

void ExampleChoice::add(const std::string& category, Example example) {
  if (most_ <= 0) return;
  auto& chosen = chosen_[category];
  Rank rank{mix(seed_, hash_text(example.document)), std::move(example.document)};
  const auto [place, added] = chosen.try_emplace(std::move(rank), example.gold);
  // Of two that say different things of one document, always the same one counts.
  if (!added && example.gold < place->second) place->second = std::move(example.gold);
  if (std::ssize(chosen) > most_) chosen.erase(std::prev(chosen.end()));
}

std::map<std::string, std::vector<Example>, std::less<>> ExampleChoice::take() {
  std::map<std::string, std::vector<Example>, std::less<>> taken;
  for (auto& [category, chosen] : chosen_)
    for (auto& [rank, gold] : chosen) taken[category].push_back({rank.second, std::move(gold)});
  chosen_.clear();
  return taken;
}

}  // namespace sheaf

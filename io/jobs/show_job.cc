#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/random_stream.h"
#include "core/report/values_text.h"
#include "core/task/find_text.h"
#include "core/task/gold.h"
#include "core/task/record_row.h"
#include "core/task/value_path.h"
#include "core/text/html_text.h"
#include "core/text/spelling.h"
#include "io/files/nested_items.h"
#include "io/files/predictions.h"
#include "io/jobs/finished_run.h"
#include "io/run_folder/read_rows.h"

namespace sheaf {
namespace {

constexpr const char* kAnswer = "answer";

/// The answers of an ask job as values, which get the texts of their questions for names once the corpus is
/// read.
ExtractedValues values_of(RowContent&& content) {
  if (auto* extracted = std::get_if<ExtractedValues>(&content)) return std::move(*extracted);
  ExtractedValues values;
  for (RowAnswer* answer : answers_of(content)) values.values.push_back({kAnswer, std::move(*answer)});
  return values;
}

/// Which rows to show.
class RowFilter {
 public:
  /// `asks`: of an ask job, whose answers are called "answer".
  RowFilter(const ShowSettings& settings, const Schema& schema, bool asks) : category_(settings.category) {
    if (asks && !category_.empty())
      refuse("--category: {} is the run of an ask job, which has no categories; leave the option out",
             settings.run);
    std::vector<std::string> categories;
    for (const Category& category : schema.categories) categories.push_back(category.name);
    if (!category_.empty() && !schema.find(category_))
      refuse("--category: the schema has no category \"{}\"{}", shorten_text(category_, 60),
             suggest_spelling(category_, categories));
    if (settings.where.empty()) return;
    const size_t equals = settings.where.find('=');
    if (equals == std::string::npos)
      refuse("--where {}: write it as attribute=value or attribute=null", shorten_text(settings.where, 60));
    attribute_ = settings.where.substr(0, equals);
    value_ = settings.where.substr(equals + 1);
    if (asks && attribute_ != kAnswer)
      refuse("--where {}: this is the run of an ask job; write answer=VALUE or answer=null",
             shorten_text(settings.where, 60));
    path_ = {{attribute_}};
    if (asks) return;
    read_wanted_path();
    bool found = false;
    for (const Category& category : schema.categories) {
      const Attribute* const attribute =
          category_.empty() || category.name == category_ ? find_wanted(category) : nullptr;
      if (!attribute) continue;
      found = true;
      in_list_ = in_list_ || leads_into_list(category.attributes);
      if (attribute->nested())
        refuse("--where {}: \"{}\" holds values of its own; name one of them, such as {}",
               shorten_text(settings.where, 60), shorten_text(attribute_, 60), inner_example(*attribute));
      add_typed(*attribute);
    }
    if (!found) check_attribute("--where", attribute_, schema, category_);
    if (!found) refuse("--where: \"{}\" leads to no attribute", shorten_text(attribute_, 60));
  }

  bool takes(const ExtractedValues& row) const {
    if (!category_.empty() && row.category != category_) return false;
    if (attribute_.empty()) return true;
    const std::vector<PathStep> name = {{attribute_}};
    return holds(row.values, named_.contains(row.category) ? name : path_);
  }

 private:
  static constexpr int32_t kAnyEntry = std::numeric_limits<int32_t>::max();

  /// variants[2].price is the price of the third of the variants, variants[].price that of any.
  void read_wanted_path() {
    std::string text;
    bool quoted = false;
    for (size_t i = 0; i < attribute_.size(); ++i) {
      quoted ^= attribute_[i] == '"' && (i == 0 || attribute_[i - 1] != '\\');
      text += attribute_[i];
      if (!quoted && attribute_[i] == '[' && attribute_.substr(i + 1, 1) == "]")
        text += std::to_string(kAnyEntry);
    }
    path_ = read_path(text).value_or(ValuePath{{attribute_}});
  }

  /// What the path leads to in a category; a name that looks like a path is a name first.
  const Attribute* find_wanted(const Category& category) {
    const auto plain = std::ranges::find(category.attributes, attribute_, &Attribute::name);
    if (plain == category.attributes.end()) return find_attribute(category.attributes, path_text(path_));
    named_.insert(category.name);
    return &*plain;
  }

  /// Whether a list of objects stands on the way.
  bool leads_into_list(const std::vector<Attribute>& attributes) const {
    const std::vector<Attribute>* here = &attributes;
    for (size_t i = 0; i + 1 < path_.size(); ++i) {
      const auto step = std::ranges::find(*here, path_[i].name, &Attribute::name);
      if (step == here->end()) return false;
      if (step->type == ValueType::entries) return true;
      here = &step->fields;
    }
    return false;
  }

  /// A path that leads into an object or a list of objects.
  std::string inner_example(const Attribute& attribute) const {
    const bool list = attribute.type == ValueType::entries;
    return fmt::format("{}{}.{}", attribute_, list && !path_.back().entry ? "[]" : "",
                       path_key(attribute.fields.front().name));
  }

  /// Whether one of the values that the steps lead to is the wanted one. The answers of an ask job share a
  /// name.
  bool holds(const std::vector<AttributeValue>& values, std::span<const PathStep> steps) const {
    return std::ranges::any_of(values, [&](const AttributeValue& value) {
      return value.name == steps.front().name && leads_to_wanted(value.answer.value, steps);
    });
  }

  /// `steps`: to the value and on from it.
  bool leads_to_wanted(const RowValue& held, std::span<const PathStep> steps) const {
    const auto inner = steps.subspan(1);
    if (inner.empty()) return is_found(held) ? is_value(held) : value_ == "null";
    if (!is_found(held) && !in_list_) return value_ == "null";  // an object that is null as a whole
    if (const auto* object = std::get_if<RowObject>(&held)) return holds(object->values, inner);
    const auto* list = std::get_if<std::vector<RowObject>>(&held);
    if (!list) return false;
    const int32_t wanted = steps.front().entry.value_or(kAnyEntry);
    if (wanted != kAnyEntry)
      return std::cmp_less(wanted, list->size()) && holds((*list)[static_cast<size_t>(wanted)].values, inner);
    return std::ranges::any_of(*list, [&](const RowObject& entry) { return holds(entry.values, inner); });
  }

  /// Rows hold 8.5 where the user writes 8.50, and true for yes.
  void add_typed(Attribute attribute) {
    if (attribute.type == ValueType::text || attribute.type == ValueType::span ||
        attribute.type == ValueType::list)
      return;
    attribute.limits = {};
    const auto typed = typed_gold(attribute, value_);
    if (typed && typed->is_primitive() && !typed->is_null()) typed_.push_back(*typed);
  }

  /// Whether it is the value, or a list that holds it.
  bool is_value(const RowValue& value) const {
    const nlohmann::json held = value_json(value);
    if (std::ranges::find(typed_, held) != typed_.end()) return true;
    if (const auto* list = std::get_if<std::vector<std::string>>(&value))
      if (std::ranges::find(*list, value_) != list->end()) return true;
    if (const auto* text = std::get_if<std::string>(&value)) return *text == value_;
    return value_for_people(value) == value_;
  }

  std::string category_, attribute_, value_;
  ValuePath path_;                     ///< of the attribute; kAnyEntry: of any entry
  bool in_list_ = false;               ///< the path leads into a list of objects
  std::set<std::string> named_;        ///< categories with an attribute that has the whole path for its name
  std::vector<nlohmann::json> typed_;  ///< what `value_` is by the types of the attribute
};

/// The document as the model read it.
std::string without_tags(const Record& record) {
  std::string text;
  for (const ColumnText& column : columns_of(record))
    text += (text.empty() ? "" : "\n") + html_text(column.text).text;
  return text;
}

}  // namespace

ShownRows show_rows(const ShowSettings& settings) {
  const FinishedRun run(settings, true, true);
  const RowFilter filter(settings, run.schema(), run.asks());
  ShownRows shown;
  shown.unfinished = !run.is_finished();
  std::map<std::pair<uint64_t, int64_t>, ShownRow> chosen;  // by lot and number of the row
  int64_t number = 0;
  read_rows(settings.run, run.manifest(), run.schema(), [&](Row&& row) {
    const int64_t at = number++;
    ExtractedValues values = values_of(std::move(row.content));
    if (!filter.takes(values)) return;
    ++shown.matching;
    const std::string id = id_text(row.id);
    chosen.emplace(std::pair{mix(settings.seed, hash_text(id)), at}, ShownRow{id, {}, std::move(values)});
    if (std::ssize(chosen) > settings.sample) chosen.erase(std::prev(chosen.end()));
  });
  std::map<int64_t, ShownRow> rows;
  std::set<int64_t> numbers;
  for (auto& [lot, row] : chosen) {
    numbers.insert(lot.second);
    rows.emplace(lot.second, std::move(row));
  }
  const std::vector<Record> records = run.records(numbers, [&](int64_t row) {
    const auto found = rows.find(row);
    return found == rows.end() ? nullptr : &found->second.id;
  });
  size_t next = 0;
  for (auto& [row, about] : rows) {
    const Record& record = records[next++];
    about.asks = run.asks();
    for (size_t q = 0; about.asks && q < std::min(about.values.values.size(), record.questions.size()); ++q)
      about.values.values[q].name = record.questions[q].text;
    about.document = run.reads_html() ? without_tags(record) : record.document;
    shown.rows.push_back(std::move(about));
  }
  return shown;
}

nlohmann::ordered_json shown_json(const ShownRow& row) {
  if (row.asks) {
    nlohmann::ordered_json answers = nlohmann::ordered_json::array();
    for (const AttributeValue& value : row.values.values) {
      nlohmann::ordered_json& answer = answers.emplace_back();
      answer = {{"question", value.name}, {"answer", value_for_people(value.answer.value)}};
      if (value.answer.option) answer["option"] = *value.answer.option;
    }
    return {{"id", row.id}, {"document", row.document}, {"answers", std::move(answers)}};
  }
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const AttributeValue& value : row.values.values)
    values[value.name] =
        is_nested(value.answer.value) ? value_json(value.answer.value) : value_for_people(value.answer.value);
  return {{"id", row.id}, {"category", row.values.category}, {"document", row.document}, {"values", values}};
}

}  // namespace sheaf

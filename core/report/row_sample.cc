#include "core/report/row_sample.h"

#include <algorithm>

#include "core/base/random_stream.h"
#include "core/report/values_text.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kSampleRows = 8, kSampleValues = 60;
constexpr size_t kLongestText = 1000, kLongestValue = 200;  // bytes

uint64_t lot_of(const std::string& id, std::string_view text) {
  return mix(hash_text(id), hash_text(text));
}

std::string sample_id(const json& id) {
  return id.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string sample_text(const Record& record) {
  std::string text = whole_document(record);
  if (text.empty() && !record.dialog.turns.empty()) text = record.dialog.turns.back();
  return valid_utf8(shorten_text(text, kLongestText));
}

void add_sample_value(const std::string& name, const RowAnswer& answer, ordered_json& values) {
  if (values.size() == kSampleValues) return;
  values.push_back({{"name", valid_utf8(shorten_text(name, kLongestValue))},
                    {"value", answer_for_people(answer)},
                    {"note", valid_utf8(shorten_text(answer.note, kLongestValue))}});
}

ordered_json sample_values(const Record& record, const Row& row) {
  ordered_json values = ordered_json::array();
  if (const auto* extracted = std::get_if<ExtractedValues>(&row.content)) {
    for (const AttributeValue& value : extracted->values) add_sample_value(value.name, value.answer, values);
  } else if (const auto* list = std::get_if<std::vector<QuestionAnswer>>(&row.content)) {
    for (size_t i = 0; i < list->size(); ++i)
      add_sample_value(i < record.questions.size() ? record.questions[i].text : "", (*list)[i].answer,
                       values);
  } else {
    add_sample_value(record.questions.empty() ? "answer" : record.questions[0].text,
                     std::get<RowAnswer>(row.content), values);
  }
  return values;
}

constexpr size_t kKeptValues = 32, kValuesShown = 5;
constexpr size_t kLongestCounted = 100;  // bytes of a value

}  // namespace

void RowSample::add(const Record& record, const Row& row) {
  const std::string text = sample_text(record);
  const std::string id = sample_id(row.id);
  const uint64_t hash = lot_of(id, text);
  if (rows_.size() == kSampleRows && hash >= rows_.rbegin()->first) return;
  const auto* extracted = std::get_if<ExtractedValues>(&row.content);
  rows_[hash] = {{"id", id},
                 {"category", extracted ? valid_utf8(extracted->category) : ""},
                 {"text", text},
                 {"values", sample_values(record, row)}};
  if (rows_.size() > kSampleRows) rows_.erase(std::prev(rows_.end()));
}

ordered_json RowSample::json() const {
  ordered_json list = ordered_json::array();
  for (const auto& [hash, row] : rows_) list.push_back(row);
  return list;
}

void add_row_sample(const ordered_json& from, ordered_json& to) {
  std::map<uint64_t, ordered_json> rows;
  for (const ordered_json* list : {&from, static_cast<const ordered_json*>(&to)})
    for (const ordered_json& row : *list)
      rows.emplace(lot_of(row.at("id").get<std::string>(), row.at("text").get<std::string>()), row);
  to = ordered_json::array();
  for (const auto& [hash, row] : rows)
    if (to.size() < kSampleRows) to.push_back(row);
}

void keep_common(ordered_json& list) {
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.at("rows") > b.at("rows"); });
  if (list.size() > kValuesShown) list.erase(list.begin() + kValuesShown, list.end());
}

void CommonValues::add(std::string_view value) {
  const std::string shown = shorten_text(value, kLongestCounted);
  const auto found = std::ranges::find(entries_, shown, &Entry::value);
  if (found != entries_.end()) {
    ++found->count;
  } else if (entries_.size() < kKeptValues) {
    entries_.push_back({shown, 1, 0});
  } else {
    Entry& least = *std::ranges::min_element(entries_, {}, &Entry::count);
    least = {shown, least.count + 1, least.count};
  }
}

ordered_json CommonValues::json() const {
  ordered_json list = ordered_json::array();
  for (const Entry& entry : entries_)
    list.push_back({{"value", valid_utf8(entry.value)}, {"rows", entry.count - entry.extra}});
  keep_common(list);
  return list;
}

}  // namespace sheaf

// Where the values of a row stand, and those of entries near their anchors.
#include <algorithm>

#include "core/task/find_text.h"
#include "core/task/record_row.h"
#include "core/task/value_path.h"

namespace sheaf {
namespace {

void add_span(const Record& record, const PlaceChoice& choice, RowAnswer& answer) {
  // The letter of an option stands nowhere.
  if (answer.option)
    answer.spans.emplace(1, std::nullopt);
  else
    answer.spans = spans_of(record, answer.value, choice);
}

/// The place of the text or date that tells an entry apart.
std::optional<TextPlace> find_anchor(const Record& record, const RowValue& value, const PlaceChoice& choice) {
  const auto* text = std::get_if<std::string>(&value);
  if (!text) return std::nullopt;
  const auto place = find_text(record, *text, choice);
  return place ? place : find_date(record, *text, choice);
}

/// Where the anchors of entries stand, each behind the one before it where it can be. `around`: the entry of
/// another list that all are in, or the document.
std::vector<std::optional<TextPlace>> anchor_places(const Record& record,
                                                    const std::vector<RowObject>& entries, size_t anchor,
                                                    const TextPlace& around) {
  std::vector<std::optional<TextPlace>> places;
  size_t from = around.begin;
  for (const RowObject& entry : entries) {
    const RowValue& value = entry.values[anchor].answer.value;
    auto place = find_anchor(record, value, PlaceChoice({from, around.end}));
    // One that stands before its neighbour may be anywhere in the entry around both.
    if (place && place->begin < from) place = find_anchor(record, value, PlaceChoice(around));
    if (place) from = place->end;
    places.push_back(place);
  }
  return places;
}

/// `around`: the entry that the values are in; nothing: none.
void add_value_spans(const Record& record, const std::vector<Attribute>& attributes,
                     const std::optional<TextPlace>& around, std::vector<AttributeValue>& values);

void add_entry_spans(const Record& record, const Attribute& list, const std::optional<TextPlace>& around,
                     std::vector<RowObject>& entries) {
  const TextPlace whole = around.value_or(TextPlace{0, record.document.size()});
  const auto places = anchor_places(record, entries, list.anchor, whole);
  for (size_t i = 0; i < entries.size(); ++i) {
    std::optional<TextPlace> own;
    if (places[i]) {
      own = {places[i]->end, std::max(whole.end, places[i]->end)};
      for (const auto& other : places)
        if (other && other->begin >= own->begin) own->end = std::min(own->end, other->begin);
    }
    add_value_spans(record, list.fields, own ? own : around, entries[i].values);
    if (places[i]) entries[i].values[list.anchor].answer.spans = {{span_of(record, *places[i])}};
  }
}

void add_value_spans(const Record& record, const std::vector<Attribute>& attributes,
                     const std::optional<TextPlace>& around, std::vector<AttributeValue>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    RowAnswer& answer = values[i].answer;
    const PlaceChoice choice = around ? PlaceChoice(*around) : PlaceChoice();
    if (auto* object = std::get_if<RowObject>(&answer.value))
      add_value_spans(record, attributes[i].fields, around, object->values);
    else if (auto* list = std::get_if<std::vector<RowObject>>(&answer.value))
      add_entry_spans(record, attributes[i], around, *list);
    else
      add_span(record, choice, answer);
  }
}

}  // namespace

void add_spans(const Record& record, const std::vector<Attribute>* attributes, Row& row) {
  auto* extracted = std::get_if<ExtractedValues>(&row.content);
  if (extracted && attributes) return add_value_spans(record, *attributes, std::nullopt, extracted->values);
  for (RowAnswer* answer : answers_of(row.content)) add_span(record, {}, *answer);
}

}  // namespace sheaf

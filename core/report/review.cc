#include "core/report/review.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/random_stream.h"
#include "core/report/judge_page.h"
#include "core/report/review_nested.h"
#include "core/report/review_page.h"
#include "core/task/find_text.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kReviewBody = R"html(<main>
<header><h1>Review of <span id="run"></span></h1><span id="progress" role="status"></span></header>
<progress id="bar" value="0"></progress>
<p class="soft" id="tally" role="status"></p>
<p class="soft" id="bias" hidden>These are the values that the model was least sure of. The precision of the whole run is likely higher.</p>
<p class="soft" id="storage" hidden>This browser does not keep your verdicts. Download them before you close the page.</p>
<section><p class="soft" id="where"></p><h2 id="attribute"></h2><p class="soft" id="about"></p>
<p id="value"></p><p class="soft" id="facts"></p><p id="verdict" role="status"></p>
<div id="editor" hidden><p class="soft" id="hint"></p><div id="slot"></div><p id="error" role="alert"></p>
<div class="buttons"><button id="save">Save <kbd>Enter</kbd></button><button id="cancel">Cancel <kbd>Esc</kbd></button></div></div>
<div id="document" tabindex="0" role="region" aria-label="Document"></div></section>
<p id="done" hidden>Every value has a verdict. Download the gold file.</p>
<div class="buttons"><button id="right">Right <kbd>y</kbd></button><button id="wrong">Wrong <kbd>n</kbd></button>
<button id="edit">Edit <kbd>e</kbd></button><button id="undo">Undo <kbd>u</kbd></button>
<button id="back" aria-label="Previous value">←</button><button id="next" aria-label="Next value">→</button>
<button id="download">Download gold.jsonl</button></div>
</main>)html";

std::string_view type_word(ValueType type) {
  if (type == ValueType::number || type == ValueType::integer) return "number";
  if (type == ValueType::boolean) return "boolean";
  if (type == ValueType::enumeration) return "enum";
  if (type == ValueType::date) return "date";
  if (type == ValueType::object) return "object";
  if (type == ValueType::entries) return "entries";
  return type == ValueType::list ? "list" : "text";
}

/// Calls visit(answer) with each value that is neither an object nor a list of objects.
void visit_plain(const RowAnswer& answer, const std::function<void(const RowAnswer&)>& visit) {
  if (!is_nested(answer.value)) return visit(answer);
  const auto within = [&](const RowObject& object) {
    for (const AttributeValue& inner : object.values) visit_plain(inner.answer, visit);
  };
  if (const auto* object = std::get_if<RowObject>(&answer.value)) return within(*object);
  std::ranges::for_each(std::get<std::vector<RowObject>>(answer.value), within);
}

/// What the page needs to check what is typed for an attribute.
ordered_json field_json(const Attribute& attribute) {
  ordered_json fields = ordered_json::array();
  for (const Attribute& inner : attribute.fields) fields.push_back(field_json(inner));
  return {{"name", attribute.name},
          {"type", type_word(attribute.type)},
          {"options", attribute.options},
          {"fields", fields}};
}

/// JSON to read and to edit: an entry of a list a line.
std::string spread_json(const ordered_json& value) {
  if (!value.is_array()) return value.dump(2);
  std::string text;
  for (const ordered_json& entry : value) text += (text.empty() ? "[\n  " : ",\n  ") + json_text(entry);
  return text.empty() ? "[]" : text + "\n]";
}

/// Where the value stands: as its row says, else by the search that a row would have been written with.
void add_marks(const RowAnswer& answer, const Record& record, ordered_json& out) {
  const ordered_json value = value_json(answer.value);
  std::vector<std::optional<RowSpan>> spans;
  if (!answer.option) spans = answer.spans ? *answer.spans : spans_of(record, answer.value);
  const auto columns = columns_of(record);
  ordered_json &marks = out["marks"], &absent = out["absent"];
  for (size_t i = 0; i < spans.size() && i < value.size(); ++i) {
    const ordered_json& part = value.is_array() ? value[i] : value;
    // No document says "true".
    if (!spans[i] && !part.is_boolean())
      absent.push_back(part.is_string() ? part : ordered_json(json_text(part)));
    for (size_t c = 0; spans[i] && c < columns.size(); ++c)
      if (columns[c].name == spans[i]->column)
        marks.push_back({{"column", c}, {"start", spans[i]->start}, {"end", spans[i]->end}});
  }
}

ordered_json item_json(const ReviewItem& item, const Record& record) {
  const ordered_json value = value_json(item.answer.value);
  const std::optional<double> sure = sureness(item.answer);
  ordered_json out{{"record", item.record},
                   {"attribute", item.attribute.name},
                   {"description", item.attribute.description},
                   {"type", type_word(item.attribute.type)},
                   {"options", item.attribute.options},
                   {"unit", item.attribute.unit},
                   {"value", json_text(value)},
                   {"note", item.answer.note},
                   {"sureIs", item.answer.confidence ? "confidence" : "probability"},
                   {"sure", sure && std::isfinite(*sure) ? ordered_json(*sure) : ordered_json()}};
  if (!item.question.is_null()) {
    out["question"] = json_text(item.question);
    out["choices"] = item.options;
  }
  if (item.attribute.nested()) {
    out["fields"] = field_json(item.attribute)["fields"];
    out["spread"] = spread_json(value);
  }
  out["empty"] = !is_found(item.answer.value);
  out["marks"] = out["absent"] = ordered_json::array();
  visit_plain(item.answer, [&](const RowAnswer& plain) { add_marks(plain, record, out); });
  return out;
}

}  // namespace

std::optional<double> sureness(const RowAnswer& answer) {
  std::optional<double> least;
  if (answer.confidence)
    least = *answer.confidence;
  else if (answer.logprob)
    least = std::exp(*answer.logprob);
  if (!is_nested(answer.value)) return least;
  visit_plain(answer, [&](const RowAnswer& plain) {
    if (const auto sure = sureness(plain)) least = std::min(*sure, least.value_or(*sure));
  });
  return least;
}

bool ReviewSample::Candidate::operator<(const Candidate& other) const {
  return std::tie(sure, lot, value.row) < std::tie(other.sure, other.lot, other.value.row);
}

void ReviewSample::add(const std::string& id, ReviewValue value) {
  if (count_ == 0) return;
  auto& heap = strata_[{value.category, value.attribute}];
  const std::optional<double> sure = sureness(value.answer);
  by_sureness_ = by_sureness_ || sure.has_value();
  const uint64_t lot = mix(mix(seed_, hash_text(id)), hash_text(value.attribute));
  // What is not a number says nothing good about its value.
  heap.push_back({std::isnan(sure.value_or(1)) ? 0 : sure.value_or(1), lot, std::move(value)});
  std::push_heap(heap.begin(), heap.end());
  if (heap.size() <= count_) return;
  std::pop_heap(heap.begin(), heap.end());
  heap.pop_back();
}

std::vector<ReviewValue> ReviewSample::take() && {
  std::vector<std::pair<uint64_t, std::vector<Candidate>*>> turns;
  for (auto& [name, heap] : strata_) {
    std::sort_heap(heap.begin(), heap.end());
    turns.emplace_back(mix(mix(seed_, hash_text(name.first)), hash_text(name.second)), &heap);
  }
  std::stable_sort(turns.begin(), turns.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ReviewValue> chosen;
  for (size_t round = 0; chosen.size() < count_; ++round) {
    const size_t before = chosen.size();
    for (auto& [lot, heap] : turns)
      if (round < heap->size() && chosen.size() < count_) chosen.push_back(std::move((*heap)[round].value));
    if (chosen.size() == before) break;
  }
  return chosen;
}

std::string review_html(const Review& review, std::string_view script_sha256, std::string_view style_sha256) {
  ordered_json data{{"run", review.run}, {"key", review.key}, {"leastSure", review.least_sure}};
  for (const Record& record : review.records) data["records"].push_back(record_json(record));
  for (const ReviewItem& item : review.items)
    data["items"].push_back(item_json(item, review.records[item.record]));
  return judge_page_html(
      {"sheaf review: " + review.run, kReviewBody, kReviewScript, kReviewStyle, script_sha256, style_sha256},
      data);
}

}  // namespace sheaf

#include "core/report/run_statistics.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/report/values_text.h"
#include "core/task/find_text.h"
#include "core/task/record.h"
#include "core/task/value.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostReasons = 1000;  // kinds that are told apart
constexpr size_t kShownReasons = 20;
constexpr const char* kOther = "other reasons";

/// Whether the document holds every text of a value.
bool is_literal(const Record& record, const RowAnswer& answer) {
  const auto spans = answer.spans ? *answer.spans : spans_of(record, answer.value);
  return !spans.empty() && std::ranges::all_of(spans, [](const auto& span) { return span.has_value(); });
}

/// "items.jsonl:3"; empty where the record has no place.
std::string place_text(const Place& place) {
  if (place.file.empty()) return {};
  return fmt::format("{}:{}", place.file.substr(place.file.rfind('/') + 1), place.row);
}

void add_to(Throughput::Point& to, const Throughput::Point& what) {
  for (const auto& [key, count] : Throughput::kCounts) to.*count += what.*count;
}

}  // namespace

void Throughput::add(double seconds, const Point& done) {
  seconds = std::max(seconds, 0.0);
  seconds_ = std::max(seconds_, seconds);
  while (seconds / point_seconds_ >= static_cast<double>(kPoints)) {
    for (size_t i = 0; i < points_.size(); ++i) {
      const Point moved = points_[i];
      points_[i] = {};
      add_to(points_[i / 2], moved);
    }
    points_.resize((points_.size() + 1) / 2);
    point_seconds_ *= 2;
  }
  const auto at = static_cast<size_t>(seconds / point_seconds_);
  if (at >= points_.size()) points_.resize(at + 1);
  add_to(points_[at], done);
}

ordered_json Throughput::json() const {
  ordered_json json{{"seconds", seconds_}, {"point_seconds", point_seconds_}};
  for (const auto& [key, count] : kCounts) {
    ordered_json& series = json[key] = ordered_json::array();
    for (const Point& point : points_) series.push_back(point.*count);
  }
  return json;
}

void RunStatistics::start() {
  start_ = Clock::now();
}

void RunStatistics::step(const EngineStats& engine, const PipelineStats& pipeline) {
  if (start_ == Clock::time_point{}) start();
  step(std::chrono::duration<double>(Clock::now() - start_).count(), engine, pipeline);
}

void RunStatistics::step(double seconds, const EngineStats& engine, const PipelineStats& pipeline) {
  Throughput::Point done;
  done.steps = engine.steps - last_engine_.steps;
  done.rows = pipeline.decoded - last_rows_;
  done.tokens = engine.tokens() - last_engine_.tokens();
  done.answer_tokens = engine.answer_tokens - last_engine_.answer_tokens;
  throughput_.add(seconds, done);
  if (done.steps > 0) {
    tokens_per_step_.add(done.tokens);
    slots_per_step_.add(done.answer_tokens);
  }
  last_engine_ = engine;
  last_rows_ = pipeline.decoded;
}

void RunStatistics::row(const Row& row, const std::vector<Answer>& answers, const Record& record) {
  sample_.add(record, row);
  const auto add = [&](const Answer& answer) {
    value_tokens_.add(static_cast<int64_t>(answer.tokens.size()));
    ++endings_[static_cast<size_t>(answer.ending)];
  };
  for (const Answer& answer : answers) {
    add(answer);
    visit_inner(answer, add);
  }
  if (const auto* values = std::get_if<ExtractedValues>(&row.content))
    extracted(*values, record);
  else if (const auto* list = std::get_if<std::vector<QuestionAnswer>>(&row.content))
    for (const QuestionAnswer& question : *list) answered(question.answer);
  else
    answered(std::get<RowAnswer>(row.content));
}

void RunStatistics::extracted(const ExtractedValues& extracted, const Record& record) {
  auto at = categories_.find(extracted.category);
  if (at == categories_.end()) {
    at = categories_.emplace(extracted.category, CategoryCount{}).first;
    for (const AttributeValue& value : extracted.values) at->second.attributes.push_back({value.name});
  }
  CategoryCount& category = at->second;
  ++category.rows;
  const size_t count = std::min(extracted.values.size(), category.attributes.size());
  for (size_t i = 0; i < count; ++i) {
    const RowAnswer& answer = extracted.values[i].answer;
    AttributeCount& attribute = category.attributes[i];
    const bool found = is_found(answer.value);
    attribute.count.add(found, !answer.note.empty());
    attribute.cut += is_cut(answer);
    if (!found) continue;
    attribute.literal += is_literal(record, answer);
    attribute.common.add(value_for_people(answer.value).get_ref<const std::string&>());
  }
}

void RunStatistics::answered(const RowAnswer& answer) {
  questions_.add(is_found(answer.value), !answer.note.empty());
}

void RunStatistics::reject(const Reject& reject) {
  std::string kind = reason_kind(reject.reason);
  auto at = reasons_.find(kind);
  if (at == reasons_.end()) {
    const bool full = reasons_.size() >= kMostReasons;
    Reason first;
    if (!full) first = {0, reject.reason, place_text(reject.place)};
    at = reasons_.emplace(full ? kOther : std::move(kind), std::move(first)).first;
  }
  at->second.records += reject.records;
}

void RunStatistics::add_to(ordered_json& report) const {
  report["throughput"] = throughput_.json();
  report["per_step"] = {{"tokens", tokens_per_step_.json()}, {"slots", slots_per_step_.json()}};
  report["value_tokens"] = value_tokens_.json();
  ordered_json& endings = report["endings"] = ordered_json::object();
  for (size_t i = 0; i < std::size(endings_); ++i)
    if (const auto ending = static_cast<Ending>(i); ending != Ending::searched || endings_[i] > 0)
      endings[ending_name(ending)] = endings_[i];
  ordered_json& values = report["values"] = ordered_json::array();
  for (const auto& [name, category] : categories_) {
    ordered_json attributes = ordered_json::array();
    for (const AttributeCount& attribute : category.attributes)
      attributes.push_back({{"name", valid_utf8(attribute.name)},
                            {"asked", attribute.count.asked},
                            {"found", attribute.count.found},
                            {"noted", attribute.count.noted},
                            {"cut", attribute.cut},
                            {"literal", attribute.literal},
                            {"common", attribute.common.json()}});
    values.push_back(
        {{"category", valid_utf8(name)}, {"rows", category.rows}, {"attributes", std::move(attributes)}});
  }
  report["questions"] = {
      {"asked", questions_.asked}, {"answered", questions_.found}, {"noted", questions_.noted}};
  report["sample"] = sample_.json();
  report["reject_reasons"] = reject_reasons();
}

ordered_json RunStatistics::reject_reasons() const {
  std::vector<std::pair<std::string, Reason>> reasons(reasons_.begin(), reasons_.end());
  std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) {
    if ((a.first == kOther) != (b.first == kOther)) return b.first == kOther;
    return a.second.records > b.second.records;
  });
  ordered_json list = ordered_json::array();
  int64_t more = 0;
  for (const auto& [kind, reason] : reasons) {
    if (list.size() < kShownReasons && kind != kOther)
      list.push_back({{"kind", valid_utf8(kind)},
                      {"records", reason.records},
                      {"example", valid_utf8(reason.example)},
                      {"place", valid_utf8(reason.place)}});
    else
      more += reason.records;
  }
  if (more > 0) list.push_back({{"kind", kOther}, {"records", more}, {"example", ""}, {"place", ""}});
  return list;
}

}  // namespace sheaf

#include "io/files/estimate_section.h"

#include <algorithm>
#include <charconv>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "io/files/job_paths.h"

namespace sheaf {
namespace {

constexpr Range<int64_t> kCount{1, INT64_C(1) << 50};

void read_count(YamlMap& map, const char* key, std::optional<int64_t>& target) {
  int64_t value = 1;
  map.integer(key, value, kCount);
  if (map.has(key)) target = value;
}

void read_number(YamlMap& map, const char* key, std::optional<double>& target, Range<double> range) {
  double value = range.most;
  map.number(key, value, range);
  if (map.has(key)) target = value;
}

/// A value or a list of values, each as `read_one` reads it; by default, numbers need no quotes.
std::vector<std::string> read_values(const YamlNode& node, const std::string& name,
                                     std::string (*read_one)(const YamlNode&,
                                                             std::string_view) = yaml_scalar) {
  std::vector<std::string> values;
  if (node.kind == YamlNode::Kind::list)
    for (const YamlPtr& item : node.items) values.push_back(read_one(*item, name));
  else
    values.push_back(read_one(node, name));
  if (values.empty()) refuse("{}: {} is an empty list; give at least one value", node.place.text(), name);
  return values;
}

template <class Value>
void take(std::optional<Value>& target, const std::optional<Value>& other) {
  if (!target) target = other;
}

void take(std::string& target, const std::string& other) {
  if (target.empty()) target = other;
}

}  // namespace

SweepAxis parse_sweep(const std::string& text) {
  const size_t equals = text.find('=');
  SweepAxis axis{text.substr(0, equals), {}, "--sweep " + text.substr(0, equals)};
  if (axis.key == "rows_per_step") axis.key = "tokens_per_step";  // its name in earlier versions
  const std::vector<std::string> keys = sweep_keys();
  if (equals == std::string::npos || std::ranges::find(keys, axis.key) == keys.end())
    refuse("--sweep {}: write it as KEY=VALUE,VALUE with one of {}", text, fmt::join(keys, ", "));
  for (size_t begin = equals + 1; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    if (comma == begin) refuse("--sweep {}: a value is missing", text);
    axis.values.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  if (axis.values.empty()) refuse("--sweep {}: a value is missing", text);
  return axis;
}

double parse_duration(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string unit(rest, end);
  const double factor = unit == "h" ? 3600 : unit == "m" ? 60 : unit == "s" ? 1 : 0;
  if (error != std::errc() || factor == 0 || !(value > 0))
    refuse("--within {}: write a time as 2h, 90m or 30s", text);
  return value * factor;
}

void EstimateWishes::take_missing(const EstimateWishes& section, const std::vector<std::string>& settled) {
  take(model, section.model);
  if (hardware.empty()) hardware_from = section.hardware_from;
  take(hardware, section.hardware);
  take(within, section.within);
  take(sample, section.sample);
  take(records, section.records);
  take(devices, section.devices);
  take(tokens_per_byte, section.tokens_per_byte);
  if (statistics.document == 0) statistics.document = section.statistics.document;
  for (const auto length :
       {&RecordStatistics::instruction, &RecordStatistics::questions, &RecordStatistics::question,
        &RecordStatistics::answer, &RecordStatistics::documents})
    take(statistics.*length, section.statistics.*length);
  if (!sweep.empty()) return;
  for (const SweepAxis& axis : section.sweep)
    if (std::ranges::find(settled, axis.key) == settled.end()) sweep.push_back(axis);
}

EstimateWishes read_estimate_section(YamlMap map) {
  EstimateWishes wishes;
  if (const YamlPtr model = map.node("model")) wishes.model = model_path(*model, map.path("model"));
  if (const YamlPtr hardware = map.node("hardware")) {
    wishes.hardware_from = map.where("hardware") + ": " + map.path("hardware");
    wishes.hardware = fmt::format("{}", fmt::join(read_values(*hardware, map.path("hardware")), ","));
  }
  if (const YamlPtr within = map.node("within")) {
    wishes.within = yaml_scalar(*within, map.path("within"));
    try {
      parse_duration(wishes.within);
    } catch (const Error&) {
      refuse("{}: estimate.within must be a time such as 2h, 90m or 30s, not {}", map.where("within"),
             within->describe());
    }
  }
  read_count(map, "sample", wishes.sample);
  map.accept_old("records", "rows");
  read_count(map, "records", wishes.records);
  read_count(map, "devices", wishes.devices);
  RecordStatistics& lengths = wishes.statistics;
  read_number(map, "answer_tokens", lengths.answer, kLengths);
  read_number(map, "tokens_per_byte", wishes.tokens_per_byte, {0.01, 4});
  YamlMap statistics = map.map("statistics"), sweep = map.map("sweep");
  map.finish();
  statistics.number("document_tokens", lengths.document, kLengths);
  statistics.accept_old("documents_per_record", "documents_per_row");
  read_number(statistics, "documents_per_record", lengths.documents, kDocuments);
  read_number(statistics, "questions", lengths.questions, kLengths);
  read_number(statistics, "question_tokens", lengths.question, kLengths);
  read_number(statistics, "instruction_tokens", lengths.instruction, {0, kLengths.most});
  statistics.finish();
  sweep.accept_old("tokens_per_step", "rows_per_step");
  for (const std::string& key : sweep_keys())
    if (const YamlPtr values = sweep.node(key))
      wishes.sweep.push_back(
          {key, read_values(*values, sweep.path(key), key == "model" ? model_path : yaml_scalar),
           sweep.where(key) + ": " + sweep.path(key)});
  sweep.finish();
  return wishes;
}

}  // namespace sheaf

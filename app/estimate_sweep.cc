#include "app/estimate_sweep.h"

#include <algorithm>
#include <charconv>
#include <fmt/ranges.h>

#include "app/estimate_inputs.h"
#include "core/error.h"

namespace sheaf {
namespace {

const std::vector<std::string> kKeys = {"method",        "model",         "hardware", "documents",
                                        "prompt_tokens", "rows_per_step", "devices"};
const std::vector<std::string> kMethods = {"standard", "separate",           "prefix",
                                           "ippd",     "parallel-prompting", "hpd"};

int32_t whole_number(const std::string& key, const std::string& text, int32_t least) {
  int32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < least)
    refuse("--sweep {}: \"{}\" must be a whole number of at least {}", key, text, least);
  return value;
}

void apply(EstimateCase& target, const HardwareList& hardware, const std::string& key,
           const std::string& value) {
  if (key == "method") {
    if (std::ranges::find(kMethods, value) == kMethods.end())
      refuse("--sweep method: there is no method {}; there are {}", value, fmt::join(kMethods, ", "));
    target.method.name = value;
  } else if (key == "model") {
    target.model = value;
    target.config = read_model_config(value);
  } else if (key == "hardware") {
    target.hardware = &hardware.find(value);
  } else if (key == "documents") {
    target.method.documents = whole_number(key, value, 0);
  } else if (key == "prompt_tokens") {
    target.method.prompt_tokens = whole_number(key, value, 1);
  } else if (key == "rows_per_step") {
    target.use.rows_per_step = whole_number(key, value, 1);
  } else {
    target.devices = whole_number(key, value, 1);
  }
}

void mark_best(std::vector<SweepRow>& rows, double within) {
  SweepRow *cheapest = nullptr, *fastest = nullptr;
  for (SweepRow& row : rows) {
    if (!row.estimate) continue;
    const Estimate& each = *row.estimate;
    if (!fastest || each.total_seconds() < fastest->estimate->total_seconds()) fastest = &row;
    if (within > 0 && each.total_seconds() > within) {
      row.mark = "too slow";
      continue;
    }
    if (each.usd_per_hour > 0 && (!cheapest || each.usd() < cheapest->estimate->usd())) cheapest = &row;
  }
  if (fastest) fastest->mark += fastest->mark.empty() ? "fastest" : ", fastest";
  if (!cheapest) return;
  const std::string text = within > 0 ? "cheapest in time" : "cheapest";
  cheapest->mark = cheapest->mark.empty() ? text : text + ", " + cheapest->mark;
}

}  // namespace

SweepAxis parse_sweep(const std::string& text) {
  const size_t equals = text.find('=');
  SweepAxis axis{text.substr(0, equals), {}};
  if (equals == std::string::npos || std::ranges::find(kKeys, axis.key) == kKeys.end())
    refuse("--sweep {}: write it as KEY=VALUE,VALUE with one of {}", text, fmt::join(kKeys, ", "));
  for (size_t begin = equals + 1; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    if (comma == begin) refuse("--sweep {}: a value is missing", text);
    axis.values.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  if (axis.values.empty()) refuse("--sweep {}: a value is missing", text);
  return axis;
}

std::vector<SweepRow> sweep(const EstimateCase& base, const SampledRows& sample, const HardwareList& hardware,
                            const std::vector<SweepAxis>& axes, double within) {
  std::vector<SweepRow> rows;
  std::vector<size_t> at(axes.size(), 0);
  while (true) {
    EstimateCase each = base;
    SweepRow row;
    for (size_t i = 0; i < axes.size(); ++i) {
      row.values.push_back(axes[i].values[at[i]]);
      apply(each, hardware, axes[i].key, row.values.back());
    }
    row.hardware = each.hardware;
    try {
      row.estimate = estimate(each, sample);
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      row.problem = error.what();
    }
    rows.push_back(std::move(row));
    size_t axis = axes.size();
    while (axis > 0 && ++at[axis - 1] == axes[axis - 1].values.size()) at[--axis] = 0;
    if (axis == 0) break;
  }
  mark_best(rows, within);
  return rows;
}

double parse_duration(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string unit(rest, end);
  const double factor = unit == "h" ? 3600 : unit == "m" ? 60 : unit.empty() || unit == "s" ? 1 : 0;
  if (error != std::errc() || factor == 0 || !(value > 0))
    refuse("--within {}: write a time as 2h, 90m or 30s", text);
  return value * factor;
}

}  // namespace sheaf

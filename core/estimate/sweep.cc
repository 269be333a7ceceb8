#include "core/estimate/sweep.h"

#include <algorithm>
#include <charconv>
#include <fmt/ranges.h>
#include <map>
#include <thread>

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/methods/method.h"

namespace sheaf {
namespace {

int32_t whole_number(const std::string& from, const std::string& text, int32_t least) {
  int32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < least)
    refuse("{}: \"{}\" must be a whole number of at least {}", from, text, least);
  return value;
}

/// A key whose values are whole numbers.
struct NumberKey {
  std::string_view name;
  int32_t least;
  int32_t& (*in)(EstimateCase& target);
};
const NumberKey kNumbers[] = {
    {"documents", 0, [](EstimateCase& target) -> int32_t& { return target.method.documents; }},
    {"prompt_tokens", 1, [](EstimateCase& target) -> int32_t& { return target.method.prompt_tokens; }},
    {"tokens_per_step", 1, [](EstimateCase& target) -> int32_t& { return target.engine.tokens_per_step; }},
    {"prompts", 0, [](EstimateCase& target) -> int32_t& { return target.engine.prompts; }},
    {"devices", 1, [](EstimateCase& target) -> int32_t& { return target.cost.devices; }},
};

/// Sets a key of a sweep. `read_model` is asked once for each model, and `models` keeps what it said.
void apply(EstimateCase& target, const SweepAxis& axis, const std::string& value,
           const HardwareList& hardware, const ModelReader& read_model,
           std::map<std::string, DescribedModel>& models) {
  if (axis.key == "method") {
    if (const auto names = method_names(); std::ranges::find(names, value) == names.end())
      refuse("{}: unknown method \"{}\"; use one of {}", axis.from, value, fmt::join(names, ", "));
    target.method.name = value;
  } else if (axis.key == "model") {
    if (!models.contains(value)) models[value] = read_model(value);
    target.model = value;
    target.config = models[value].config;
    target.stored_bits = models[value].stored_bits;
  } else if (axis.key == "hardware") {
    target.hardware = &hardware.find(value, axis.from);
  } else {
    const NumberKey& number = *std::ranges::find(kNumbers, axis.key, &NumberKey::name);
    number.in(target) = whole_number(axis.from, value, number.least);
  }
}

/// A table of nothing helps nobody.
[[noreturn]] void refuse_all_cases(const std::vector<SweepRow>& rows) {
  std::vector<std::string> problems;
  for (const SweepRow& row : rows)
    if (std::ranges::find(problems, row.problem) == problems.end()) problems.push_back(row.problem);
  refuse("{}", fmt::join(problems, "; "));
}

void mark_best(std::vector<SweepRow>& rows, double within) {
  SweepRow *cheapest = nullptr, *to_rent = nullptr, *fastest = nullptr;
  // A model that leaves rows out which others answer is not cheaper but does less.
  int64_t fewest = INT64_MAX;
  for (const SweepRow& row : rows)
    if (row.estimate) fewest = std::min(fewest, row.estimate->refused);
  for (SweepRow& row : rows) {
    if (!row.estimate) continue;
    const Estimate& each = *row.estimate;
    if (each.refused > fewest) continue;
    if (!fastest || each.total_seconds() < fastest->estimate->total_seconds()) fastest = &row;
    if (within > 0 && each.total_seconds() > within) {
      row.mark = "too slow";
      continue;
    }
    if (!(each.usd_per_hour() > 0)) continue;
    if (!cheapest || each.usd() < cheapest->estimate->usd()) cheapest = &row;
    if (!to_rent || each.rented_usd() < to_rent->estimate->rented_usd()) to_rent = &row;
  }
  if (fastest) fastest->mark += fastest->mark.empty() ? "fastest" : ", fastest";
  if (!cheapest) return;
  const auto mark = [](SweepRow& row, const std::string& text) {
    row.mark = row.mark.empty() ? text : text + ", " + row.mark;
  };
  std::string text = within > 0 ? "cheapest in time" : "cheapest";
  if (to_rent != cheapest) mark(*to_rent, text + " to rent as asked");
  if (const std::optional<Price>& price = cheapest->estimate->price; price && price->share())
    text += fmt::format(" (at a share of {})", price->instance->devices);
  mark(*cheapest, text);
}

}  // namespace

std::vector<std::string> sweep_keys() {
  std::vector<std::string> keys = {"method", "model", "hardware"};
  for (const NumberKey& number : kNumbers) keys.emplace_back(number.name);
  return keys;
}

std::vector<SweepRow> sweep(const EstimateCase& base, const SampledRecords& sample,
                            const HardwareList& hardware, const std::vector<SweepAxis>& axes, double within,
                            const ModelReader& read_model) {
  constexpr size_t kMost = 10'000;
  size_t count = 1;
  for (const SweepAxis& axis : axes) count *= std::min(axis.values.size(), kMost);
  if (count > kMost) refuse("--sweep: there are {} combinations; at most {} can be compared", count, kMost);
  // A price is that of one device; compared by it, the others would look cheap or dear for nothing.
  const bool several = std::ranges::any_of(
      axes, [](const SweepAxis& axis) { return axis.key == "hardware" && axis.values.size() > 1; });
  EstimateCase first = base;
  if (several && base.cost.hardware.empty()) first.cost.usd_per_hour = 0;
  std::map<std::string, DescribedModel> models;
  std::vector<SweepRow> rows(count);
  for (size_t r = 0; r < count; ++r) {
    rows[r].asked = first;
    size_t rest = r, size = count;
    for (const SweepAxis& axis : axes) {
      size /= axis.values.size();
      rows[r].values.push_back(axis.values[rest / size]);
      rest %= size;
      apply(rows[r].asked, axis, rows[r].values.back(), hardware, read_model, models);
    }
  }
  ThreadPool threads(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  threads.run(static_cast<int64_t>(count), [&](int64_t i, int) {
    SweepRow& row = rows[static_cast<size_t>(i)];
    try {
      row.estimate = estimate(row.asked, sample);
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      row.problem = error.what();
    }
  });
  if (std::ranges::none_of(rows, [](const SweepRow& row) { return row.estimate.has_value(); }))
    refuse_all_cases(rows);
  mark_best(rows, within);
  return rows;
}

}  // namespace sheaf

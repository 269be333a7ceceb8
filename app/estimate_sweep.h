#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/hardware_file.h"
#include "core/estimate/estimate.h"

namespace sheaf {

/// A key of `--sweep KEY=VALUE,VALUE` and its values.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
};

/// Refuses an unknown key and an empty list.
SweepAxis parse_sweep(const std::string& text);

struct SweepRow {
  std::vector<std::string> values;  ///< one per axis
  const Hardware* hardware = nullptr;
  std::optional<Estimate> estimate;  ///< none where it cannot be
  std::string problem;               ///< why
  std::string mark;                  ///< what is said beside it: "cheapest"
};

/// Every combination of the axes' values, changed from `base`. `within`: seconds that the cheapest may take;
/// 0: any.
std::vector<SweepRow> sweep(const EstimateCase& base, const SampledRows& sample, const HardwareList& hardware,
                            const std::vector<SweepAxis>& axes, double within);

/// A table, and bars of how fast each is.
std::string sweep_text(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows);
std::string sweep_html(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows,
                       const std::vector<std::string>& notes);
nlohmann::ordered_json estimate_json(const Estimate& estimate);

/// "2h", "90m", "30s" or seconds.
double parse_duration(const std::string& text);

}  // namespace sheaf

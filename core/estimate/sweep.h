#pragma once
#include <nlohmann/json.hpp>

#include "core/estimate/estimate.h"
#include "core/estimate/hardware.h"

namespace sheaf {

/// A key of `--sweep KEY=VALUE,VALUE` and its values.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
  std::string from = {};  ///< where it was asked for: an option, or a job's line and key
};

struct SweepRow {
  std::vector<std::string> values;  ///< one per axis
  EstimateCase asked;
  std::optional<Estimate> estimate;  ///< none where it cannot be
  std::string problem;               ///< why
  std::string mark;                  ///< what is said beside it: "cheapest"
};

/// A model's description by what the user calls it.
using ModelReader = std::function<DescribedModel(const std::string& name)>;

/// Every combination of the axes' values, changed from `base`. `within`: seconds that the cheapest may take;
/// 0: any.
std::vector<SweepRow> sweep(const EstimateCase& base, const SampledRecords& sample,
                            const HardwareList& hardware, const std::vector<SweepAxis>& axes, double within,
                            const ModelReader& read_model);

/// What an estimate is of, and how old its prices are: the first thing that a reader needs.
struct EstimateHead {
  std::string job;    ///< empty: no job
  std::string model;  ///< empty: models are compared
  int64_t rows = 0;
  std::chrono::year_month_day today;
  const HardwareList* hardware = nullptr;

  int32_t price_months() const { return hardware->price_months(today.year() / today.month()); }
  std::string prices_name() const;  ///< "list prices of 2025-07"
  /// "list prices of 2025-07, 16 months old".
  std::string prices_text() const;
  /// What to do about prices past six months; empty: they are newer.
  std::string warning() const;
  std::string text() const;
  std::string html(const std::vector<SweepRow>& sweep) const;
};

/// A table, and bars of how fast each is; as a page also with lines of the speed over an axis of numbers, or
/// with larger bars where there is none.
std::string sweep_text(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows);
std::string sweep_html(const EstimateHead& head, const std::vector<SweepAxis>& axes,
                       const std::vector<SweepRow>& rows, const std::vector<std::string>& notes);
/// `notes` and what the estimates of the rows rest on, each with the devices that it is true of.
std::vector<std::string> sweep_notes(std::vector<std::string> notes, const std::vector<SweepRow>& rows,
                                     double job_usd_per_hour);
nlohmann::ordered_json sweep_json(const std::vector<SweepRow>& rows, const std::vector<std::string>& notes);

/// The keys that a sweep may have.
std::vector<std::string> sweep_keys();

/// A case as its estimate begins.
nlohmann::ordered_json case_json(const EstimateCase& asked, int32_t tokens_per_step);
/// A case and its estimate.
nlohmann::ordered_json estimate_json(const EstimateCase& asked, const Estimate& each);
std::string estimate_text(const EstimateCase& asked, const Estimate& each, const EstimateHead& head);

/// What the whole costs at a price, at the ends of the error band: "$38–$47".
std::string money_range(const Estimate& each, double usd_per_hour);
/// "±12 %", "a factor of 3".
std::string band_text(double error);
/// What a device's error for a model comes from.
std::string error_text(const Hardware& hardware, const ModelConfig& config);
/// What is rented for its price, and whether as a whole.
std::string price_text(const Price& price, int32_t devices);

}  // namespace sheaf

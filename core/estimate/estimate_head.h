#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "core/estimate/sweep.h"

namespace sheaf {

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

}  // namespace sheaf

#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace sheaf {

/// Counts of whole numbers from 0, in at most kBins bins of equal width: where a number lies past the last
/// bin, neighbours are merged and the width doubles.
class Histogram {
 public:
  static constexpr size_t kBins = 64;

  void add(int64_t value);

  int64_t count() const { return count_; }
  int64_t sum() const { return sum_; }
  int64_t largest() const { return largest_; }
  int64_t width() const { return width_; }
  const std::vector<int64_t>& bins() const {
    return bins_;
  }  ///< bin i: values from i·width to before (i+1)·width
  double mean() const { return count_ > 0 ? static_cast<double>(sum_) / static_cast<double>(count_) : 0; }

  nlohmann::ordered_json json() const;

 private:
  std::vector<int64_t> bins_;
  int64_t width_ = 1, count_ = 0, sum_ = 0, largest_ = 0;
};

}  // namespace sheaf

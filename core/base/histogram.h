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
  Histogram& operator+=(const Histogram& other);
  /// Bin i of `bins` counts numbers from i·bin_width to before (i+1)·bin_width.
  nlohmann::ordered_json json() const;

 private:
  void widen();

  std::vector<int64_t> bins_;
  int64_t width_ = 1, count_ = 0, sum_ = 0, largest_ = 0;
};

}  // namespace sheaf

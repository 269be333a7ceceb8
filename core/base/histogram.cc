#include "core/base/histogram.h"

#include <algorithm>

namespace sheaf {

void Histogram::widen() {
  for (size_t i = 0; i < bins_.size(); ++i) {
    const int64_t moved = bins_[i];
    bins_[i] = 0;
    bins_[i / 2] += moved;
  }
  bins_.resize((bins_.size() + 1) / 2);
  width_ *= 2;
}

Histogram& Histogram::operator+=(const Histogram& other) {
  while (width_ < other.width_) widen();
  // Widths are powers of two, so a bin of the finer one falls whole into one of the coarser one.
  for (size_t i = 0; i < other.bins_.size(); ++i) {
    const size_t bin = i * static_cast<size_t>(other.width_) / static_cast<size_t>(width_);
    if (bin >= bins_.size()) bins_.resize(bin + 1);
    bins_[bin] += other.bins_[i];
  }
  count_ += other.count_;
  sum_ += other.sum_;
  largest_ = std::max(largest_, other.largest_);
  return *this;
}

void Histogram::add(int64_t value) {
  value = std::max<int64_t>(value, 0);
  while (value / width_ >= static_cast<int64_t>(kBins)) widen();
  const auto bin = static_cast<size_t>(value / width_);
  if (bin >= bins_.size()) bins_.resize(bin + 1);
  ++bins_[bin];
  ++count_;
  sum_ += value;
  largest_ = std::max(largest_, value);
}

nlohmann::ordered_json Histogram::json() const {
  const double mean = count_ > 0 ? static_cast<double>(sum_) / static_cast<double>(count_) : 0;
  return {{"count", count_}, {"mean", mean}, {"largest", largest_}, {"bin_width", width_}, {"bins", bins_}};
}

}  // namespace sheaf

#include "core/report/review_sample.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/random_stream.h"

namespace sheaf {

std::optional<double> sureness(const RowAnswer& answer) {
  if (answer.confidence) return *answer.confidence;
  if (answer.logprob) return std::exp(*answer.logprob);
  return std::nullopt;
}

bool ReviewSample::Candidate::operator<(const Candidate& other) const {
  return std::tie(sure, lot, value.row) < std::tie(other.sure, other.lot, other.value.row);
}

void ReviewSample::add(const std::string& id, ReviewValue value) {
  if (count_ == 0) return;
  auto& heap = strata_[{value.category, value.attribute}];
  const std::optional<double> sure = sureness(value.answer);
  by_sureness_ = by_sureness_ || sure.has_value();
  const uint64_t lot = mix(mix(seed_, hash_text(id)), hash_text(value.attribute));
  // What is not a number says nothing good about its value.
  heap.push_back({std::isnan(sure.value_or(1)) ? 0 : sure.value_or(1), lot, std::move(value)});
  std::push_heap(heap.begin(), heap.end());
  if (heap.size() <= count_) return;
  std::pop_heap(heap.begin(), heap.end());
  heap.pop_back();
}

std::vector<ReviewValue> ReviewSample::take() && {
  std::vector<std::pair<uint64_t, std::vector<Candidate>*>> turns;
  for (auto& [name, heap] : strata_) {
    std::sort_heap(heap.begin(), heap.end());
    turns.emplace_back(mix(mix(seed_, hash_text(name.first)), hash_text(name.second)), &heap);
  }
  std::stable_sort(turns.begin(), turns.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ReviewValue> chosen;
  for (size_t round = 0; chosen.size() < count_; ++round) {
    const size_t before = chosen.size();
    for (auto& [lot, heap] : turns)
      if (round < heap->size() && chosen.size() < count_) chosen.push_back(std::move((*heap)[round].value));
    if (chosen.size() == before) break;
  }
  return chosen;
}

}  // namespace sheaf

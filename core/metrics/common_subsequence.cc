#include "core/metrics/common_subsequence.h"

#include <bit>

namespace sheaf {

CommonSubsequence::CommonSubsequence(const std::vector<std::string>& words) : count_(words.size()) {
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<Places>& places = places_[words[i]];
    if (places.empty() || places.back().word != i / 64) places.push_back({i / 64, 0});
    places.back().where |= uint64_t{1} << i % 64;
  }
}

size_t CommonSubsequence::length_with(const std::vector<std::string>& others) const {
  // A zero at i: the subsequence is one longer with word i than without it.
  std::vector<uint64_t> rises((count_ + 63) / 64, ~uint64_t{0});
  for (const std::string& other : others) {
    const auto found = places_.find(other);
    if (found == places_.end()) continue;
    // rises = (rises + matches) | (rises - matches), as one long number.
    uint64_t carry = 0;
    size_t at = 0;  // where the carry goes
    for (const Places& places : found->second) {
      for (; carry != 0 && at < places.word; ++at) {
        const uint64_t before = rises[at];
        rises[at] = before | (before + 1);
        carry = before == ~uint64_t{0};
      }
      at = places.word;
      const uint64_t before = rises[at], matches = before & places.where;
      const uint64_t sum = before + matches;
      rises[at] = (sum + carry) | (before - matches);
      carry = sum < before || sum + carry < sum;
      ++at;
    }
    for (; carry != 0 && at < rises.size(); ++at) {
      const uint64_t before = rises[at];
      rises[at] = before | (before + 1);
      carry = before == ~uint64_t{0};
    }
  }
  size_t zeros = 0;
  for (const uint64_t word : rises) zeros += static_cast<size_t>(std::popcount(~word));
  return zeros;
}

}  // namespace sheaf

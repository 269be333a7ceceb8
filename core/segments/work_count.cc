#include "core/segments/work_count.h"

#include <algorithm>

namespace sheaf {

void WorkCount::add(const Stack& stack) {
  const std::vector<int32_t> rows = stack.most_keys();
  std::vector<int64_t> serials;
  for (size_t i = 0; i < stack.segments.size(); ++i) {
    const Segment& segment = stack.segments[i];
    const int64_t serial = next_serial_++;
    if (segment.shared) {
      std::vector<int64_t> identity{segment.first_position, static_cast<int64_t>(segment.sees.size())};
      for (const Sight& sight : segment.sees) identity.push_back(serials[sight.segment]);
      identity.insert(identity.end(), segment.tokens.begin(), segment.tokens.end());
      const auto [known, added] = shared_.try_emplace(std::move(identity), serial);
      serials.push_back(known->second);
      if (!added) continue;
    } else {
      serials.push_back(serial);
    }
    work_.add_chain(0, rows[i]);
    for (const Sight& sight : segment.sees) {
      const int64_t seen = rows[sight.segment];
      // Abreast, a row sees the other's tokens up to its own index: a triangle, then all of it.
      const int64_t rising = sight.abreast ? std::min<int64_t>(rows[i], seen) : 0;
      work_.keys += rising * (rising + 1) / 2 + (rows[i] - rising) * seen;
    }
  }
  for (const Slot& slot : stack.slots) work_.picks += int64_t{slot.prompts()} * slot.max_tokens;
}

}  // namespace sheaf

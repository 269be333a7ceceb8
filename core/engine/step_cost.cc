#include "core/engine/step_cost.h"

#include <algorithm>
#include <cmath>

namespace sheaf {
namespace {

constexpr double kByOne = 16;    // loads up to this have a place each
constexpr int64_t kFresh = 256;  // steps after which a time may be out of date
constexpr double kDown = 0.5;    // how far a shorter time moves what is known,
constexpr double kUp = 0.15;     // and a longer one: a busy machine makes some steps long, none short

}  // namespace

size_t StepCost::place(double load) {
  const double at = load < kByOne ? std::round(load) : kByOne + std::floor(4 * std::log2(load / kByOne));
  return static_cast<size_t>(std::clamp(at, 0.0, 79.0));
}

void StepCost::count(double load, double seconds) {
  Seen& seen = seen_[place(load)];
  const double weight = seen.step == 0 ? 1 : seconds < seen.seconds ? kDown : kUp;
  seen.load += weight * (load - seen.load);
  seen.seconds += weight * (seconds - seen.seconds);
  seen.step = ++steps_;
}

/// The one next to `load`, of those that are not out of date where there are such.
const StepCost::Seen* StepCost::nearest(double load, bool above) const {
  const Seen* best = nullptr;
  const auto fresh = [&](const Seen* seen) { return steps_ - seen->step < kFresh; };
  for (const Seen& seen : seen_) {
    if (seen.step == 0 || (above ? seen.load < load : seen.load > load)) continue;
    const bool nearer = !best || (above ? seen.load < best->load : seen.load > best->load);
    if (!best || fresh(&seen) > fresh(best) || (fresh(&seen) == fresh(best) && nearer)) best = &seen;
  }
  return best;
}

double StepCost::seconds(double load) const {
  const Seen *below = nearest(load, false), *above = nearest(load, true);
  if (!below && !above) return 0;
  if (!below) {
    // As steep as further up, but no steeper than in proportion.
    const double own = above->seconds / above->load;
    const Seen* next = nearest(std::nextafter(above->load, HUGE_VAL), true);
    const double slope =
        next ? std::clamp((next->seconds - above->seconds) / (next->load - above->load), 0.0, own) : own;
    return above->seconds - slope * (above->load - load);
  }
  if (!above) return below->seconds * std::max(1.0, load / std::max(1.0, below->load));
  if (above->load <= below->load) return above->seconds;
  const double share = (load - below->load) / (above->load - below->load);
  return below->seconds + share * (above->seconds - below->seconds);
}

}  // namespace sheaf

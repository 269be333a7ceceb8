#include <algorithm>
#include <cmath>

#include "core/engine/speculate.h"

namespace sheaf {

constexpr double kByOne = 16;    // loads up to this have a place each
constexpr int64_t kFresh = 256;  // steps after which a time may be out of date
constexpr double kDown = 0.5;    // how far a shorter time moves what is known
constexpr double kUp = 0.15;  // how far a longer time does: a busy machine makes some steps long, none short

constexpr double kRecent = 0.02;         // weight of the last token
constexpr double kLastAnswer = 0.2;      // weight of the last answer
constexpr int32_t kSteps = 8;            // steps that are judged together
constexpr double kLeastReturn = 1.1;     // on what is spent
constexpr int32_t kLongestPause = 4096;  // steps
constexpr int64_t kShort = 8;            // tokens of an answer that may be over any moment
constexpr int64_t kManyTokens = 32;      // tokens that a time is taken from

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

bool DraftPay::due() {
  if (pause_ > 0) --pause_;
  return pause_ == 0;
}

double DraftPay::round_seconds(double lines, double plain) const {
  return rounds_.known() ? rounds_.seconds(lines) : plain * cost_;
}

double DraftPay::tokens_left(int64_t decoded, int64_t most) const {
  // An answer that has outlived the others may last as long again.
  const auto known = static_cast<double>(decoded);
  const double left = std::max(answer_tokens_ - known, decoded > kShort ? known : 0.0);
  return std::min(left, static_cast<double>(most - decoded));
}

bool DraftPay::worth_following(double plain, double share, int64_t missing, double compute) const {
  const double cost = prompt_seconds_ > 0 ? prompt_seconds_ * static_cast<double>(missing) : compute * cost_;
  return plain * (saved_ < 0 ? share : std::min(share, saved_)) > kLeastReturn * cost;
}

void DraftPay::count_prompts(int64_t tokens, double seconds) {
  if (tokens < kManyTokens) return;
  const double each = seconds / static_cast<double>(tokens);
  prompt_seconds_ = prompt_seconds_ > 0 ? 0.5 * (prompt_seconds_ + each) : each;
}

void DraftPay::count_token(bool right) {
  right_ += kRecent * ((right ? 1 : 0) - right_);
}

void DraftPay::count_answer(int64_t tokens) {
  const auto length = static_cast<double>(tokens);
  answer_tokens_ = answer_tokens_ > 0 ? answer_tokens_ + kLastAnswer * (length - answer_tokens_) : length;
}

void DraftPay::count_step(double plain, double spent, double gained) {
  plain_ += plain;
  spent_ += spent;
  gained_ += gained;
  if (++steps_ < kSteps) return;
  const bool paid = gained_ > kLeastReturn * spent_;
  pause_ = paid ? 0 : next_pause_;
  next_pause_ = paid ? kFirstPause : std::min(2 * next_pause_, kLongestPause);
  const double saved = std::max(0.0, gained_ - spent_) / (plain_ + gained_);
  saved_ = saved_ < 0 ? saved : 0.5 * (saved_ + saved);
  plain_ = spent_ = gained_ = 0;
  steps_ = 0;
}

}  // namespace sheaf

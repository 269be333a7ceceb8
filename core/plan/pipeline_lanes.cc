// The engines of a pipeline: what each decodes next, and what becomes of its answers.
#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/engine/answer.h"
#include "core/plan/pipeline.h"

namespace sheaf {

constexpr auto kBetweenLooks = std::chrono::milliseconds(50);  // for a signal, which wakes nobody
constexpr size_t kExpected = 16;  // stacks that an engine is told of before it takes them
constexpr size_t kMostAhead = 8;  // windows per engine that are complete before an older one

EngineStats Pipeline::engine_stats(size_t engine) const {
  const std::lock_guard lock(mutex_);
  return lanes_[engine].stats;
}

EngineStats Pipeline::engine_stats() const {
  EngineStats sum;
  for (size_t i = 0; i < lanes_.size(); ++i) sum += engine_stats(i);
  return sum;
}

/// Until nothing is left, the run is stopped, or the engine fails and others are left.
void Pipeline::decode(Lane& lane) {
  const auto outside = [&lane](auto&& call) {
    lane.outside = true;
    call();
    lane.outside = false;
  };
  lane.engine->on_step = [&](const EngineStats& stats) { outside([&] { count_step(lane, stats); }); };
  const auto next = [&] {
    std::optional<Stack> stack;
    outside([&] { stack = next_stack(lane); });
    return stack;
  };
  const auto done = [&](Stack&& stack, std::vector<Answer>&& answers) {
    outside([&] { take_answers(std::move(stack), std::move(answers)); });
  };
  try {
    while (lane.engine->run(next, done)) {
      bool more = false;
      outside([&] { more = wait_for_more(lane); });
      if (!more) return;
    }
    const std::lock_guard lock(lanes_mutex_);
    stopped_ = true;
  } catch (const std::exception& error) {
    // What the corpus, the job or the user is to blame for is no fault of a device.
    const auto* own = dynamic_cast<const Error*>(&error);
    if (failed_ || lane.outside || (own && own->fault() == Fault::input)) throw;
    give_up(lane, error.what());
  }
}

void Pipeline::count_step(Lane& lane, const EngineStats& stats) {
  const std::lock_guard lock(steps_mutex_);
  count([&](PipelineStats&) { lane.stats = stats; });
  if (on_step) on_step(static_cast<size_t>(&lane - lanes_.data()), engine_stats());
}

/// While what the engine threw is handled. Throws it again where no engine is left.
void Pipeline::give_up(Lane& lane, const std::string& why) {
  {
    const std::lock_guard lock(lanes_mutex_);
    lane.failed = true;
    if (std::ranges::all_of(lanes_, &Lane::failed)) throw;
    std::vector<Stack> stacks = lane.engine->take_back();
    lane.stacks.insert(lane.stacks.begin(), std::make_move_iterator(stacks.begin()),
                       std::make_move_iterator(stacks.end()));
    count([&](PipelineStats&) { lane.stats = lane.engine->stats(); });
    changed_.notify_all();
  }
  const std::lock_guard lock(steps_mutex_);
  if (on_failed) on_failed(static_cast<size_t>(&lane - lanes_.data()), why);
}

/// Whether another window may be taken: those that are complete wait in memory for the older ones.
bool Pipeline::has_room() const {
  if (lanes_.size() == 1) return true;
  const auto complete =
      std::ranges::count_if(windows_, [](const auto& each) { return each.second.open == 0; });
  return static_cast<size_t>(complete) < kMostAhead * lanes_.size();
}

/// After the engine had nothing to do: false where nothing will come.
bool Pipeline::wait_for_more(Lane& lane) {
  std::unique_lock lock(lanes_mutex_);
  while (true) {
    if (failed_ || (all_planned_ && windows_.empty() && taking_ == 0)) return false;
    const bool waits = std::ranges::any_of(
        lanes_, [&](const Lane& each) { return (each.failed || all_planned_) && !each.stacks.empty(); });
    if (waits || (!all_planned_ && has_room()) || lane.engine->interrupted()) return true;
    changed_.wait_for(lock, kBetweenLooks);
  }
}

/// One stack of the lane that has the most waiting: the oldest of one that failed, the newest of another.
bool Pipeline::take_from_others(Lane& lane, bool only_failed) {
  Lane* fullest = nullptr;
  for (Lane& each : lanes_)
    if ((each.failed || !only_failed) && !each.stacks.empty() &&
        (!fullest || each.stacks.size() > fullest->stacks.size()))
      fullest = &each;
  if (!fullest) return false;
  std::deque<Stack>& from = fullest->stacks;
  lane.stacks.push_back(std::move(fullest->failed ? from.front() : from.back()));
  fullest->failed ? from.pop_front() : from.pop_back();
  fullest->expected = std::min(fullest->expected, from.size());
  return true;
}

std::optional<Stack> Pipeline::next_stack(Lane& lane) {
  std::unique_lock lock(lanes_mutex_);
  while (lane.stacks.empty()) {
    if (failed_) rethrow();
    if (lane.engine->interrupted()) return std::nullopt;
    if (take_from_others(lane, !all_planned_)) break;
    if (all_planned_ || !has_room()) return std::nullopt;
    ++taking_;
    lock.unlock();
    std::optional<Window> window = planned_.pop();
    lock.lock();
    --taking_;
    if (failed_) rethrow();
    if (!window) {
      all_planned_ = true;
      changed_.notify_all();
      continue;
    }
    for (Stack& stack : std::exchange(window->stacks, {})) lane.stacks.push_back(std::move(stack));
    windows_.emplace(window->number, std::move(*window));
    changed_.notify_all();
    pass_on_finished();  // a window may have nothing to decode
  }
  Stack stack = std::move(lane.stacks.front());
  lane.stacks.pop_front();
  lane.expected -= std::min<size_t>(lane.expected, 1);
  while (lane.expected < std::min(kExpected, lane.stacks.size()))
    lane.engine->expect(lane.stacks[lane.expected++]);
  Window& window = windows_.at(stack.window);
  for (const Slot& slot : stack.slots) {
    Clock::time_point& begun = window.entries[slot.record].begun;
    if (begun == Clock::time_point{}) begun = Clock::now();
  }
  if (on_stack) on_stack(stack, window.records);
  return stack;
}

void Pipeline::take_answers(Stack&& stack, std::vector<Answer>&& answers) {
  const std::lock_guard lock(lanes_mutex_);
  Window& window = windows_.at(stack.window);
  int64_t decoded = 0;
  for (size_t i = 0, end = 0; i < answers.size(); i = end) {
    end = options_end(stack.slots, i);
    const Slot& slot = stack.slots[i];
    Entry& entry = window.entries[slot.record];
    entry.outcome.answers[slot.question] =
        take_likeliest(std::span(stack.slots).subspan(i, end - i), std::span(answers).subspan(i, end - i));
    if (--entry.open > 0) continue;
    ++decoded;
    entry.outcome.seconds = std::chrono::duration<double>(Clock::now() - entry.begun).count();
  }
  --window.open;
  count([&](PipelineStats& stats) { stats.decoded += decoded; });
  pass_on_finished();
}

void Pipeline::pass_on_finished() {
  for (auto oldest = windows_.find(next_number_); oldest != windows_.end() && oldest->second.open == 0;
       oldest = windows_.find(next_number_)) {
    passed_on_to_ = oldest->second.end;
    if (!finished_.push(std::move(oldest->second))) rethrow();
    windows_.erase(oldest);
    ++next_number_;
    passed_on_at_ = Clock::now();
    changed_.notify_all();
  }
  if (Clock::now() - passed_on_at_ >= between_groups) pass_on_complete();
}

}  // namespace sheaf

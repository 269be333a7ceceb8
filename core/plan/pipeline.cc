#include "core/plan/pipeline.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/interrupted.h"
#include "core/base/stopwatch.h"

namespace sheaf {

// A window of long documents has fewer rows, so that memory is bounded.
constexpr size_t kMostBytes = 32 << 20;

Pipeline::Pipeline(Corpus& corpus, Task& task, Planner& planner, const std::vector<Engine*>& engines,
                   int32_t window_rows)
    : corpus_(corpus),
      task_(task),
      planner_(planner),
      window_rows_(window_rows),
      planned_(2 + 2 * engines.size()),
      finished_(4) {
  for (Engine* engine : engines) lanes_.push_back({engine});
}

bool Pipeline::run(const Emit& emit, const Refuse& refuse) {
  passed_on_at_ = Clock::now();
  passed_on_to_ = corpus_.position();
  std::thread reader, writer;
  std::vector<std::thread> others;  // of the engines after the first
  guard([&] {                       // there may be no memory for another thread
    reader = std::thread([&, stop = own_stop] {
      own_stop = stop;
      guard([&] { read_ahead(); });
      planned_.close();
    });
    writer = std::thread([&, stop = own_stop] {
      own_stop = stop;
      guard([&] { emit_behind(emit, refuse); });
      finished_.close();
    });
    for (size_t i = 1; i < lanes_.size(); ++i)
      others.emplace_back([this, i, stop = own_stop] {
        own_stop = stop;
        guard([&] { decode(lanes_[i]); });
      });
    decode(lanes_[0]);
  });
  for (std::thread& each : others) each.join();
  count([&](PipelineStats&) {  // the writer may be asking for them
    for (Lane& lane : lanes_) lane.stats = lane.engine->stats();
  });
  planned_.close();
  if (stopped_ && !failed_) guard([&] { pass_on_complete(); });
  if (!stopped_ && !failed_ && !windows_.empty())
    guard([&] { fail("{} windows were not decoded to the end", windows_.size()); });
  finished_.close();  // what is finished is still emitted
  for (std::thread* each : {&reader, &writer})
    if (each->joinable()) each->join();
  rethrow();
  return !stopped_;
}

PipelineStats Pipeline::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Pipeline::guard(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();  // the first one is the cause of others
    failed_ = true;
    planned_.close();
    changed_.notify_all();
  }
}

void Pipeline::rethrow() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void Pipeline::read_ahead() {
  for (bool more = true; more && !failed_;) {
    std::optional<Window> window = read_window(more);
    if (!window) return;
    plan_window(*window);
    if (!planned_.push(std::move(*window))) return;
  }
}

/// Nothing where the engine was interrupted: half a window is none.
std::optional<Pipeline::Window> Pipeline::read_window(bool& more) {
  Window window;
  // Windows begin at multiples of their size, wherever reading began: a resumed run and a shard have the
  // windows of a run in one go.
  const int64_t end = (corpus_.position() / window_rows_ + 1) * window_rows_;
  size_t bytes = 0;  // of the documents
  double seconds = 0;
  {
    const Stopwatch watch(seconds);
    while (more && corpus_.position() < end && bytes < kMostBytes) {
      if (lanes_[0].engine->interrupted()) return std::nullopt;
      auto row = corpus_.next();
      if (!row)
        more = false;
      else if (auto* record = std::get_if<Record>(&*row)) {
        bytes += record->document.size();
        for (const std::string& document : record->documents) bytes += document.size();
        window.records.push_back(std::move(*record));
        window.entries.push_back({.end = corpus_.position()});
      } else
        window.rejects.emplace_back(window.records.size(), std::get<Reject>(std::move(*row)));
    }
  }
  window.end = corpus_.position();
  count([&](PipelineStats& stats) {
    stats.read_seconds += seconds;
    stats.rows_read = window.end;
    stats.share_read = corpus_.share_read();
    window.number = stats.windows++;
  });
  return window;
}

void Pipeline::plan_window(Window& window) {
  double seconds = 0;
  int64_t complete = 0;  // records of which nothing has to be decoded
  {
    const Stopwatch watch(seconds);
    std::vector<KeyedAnswers> keyed;
    Plan plan = known.plan(task_, planner_, window.records, keyed);
    for (auto& [index, reason] : plan.refused) {
      const auto i = static_cast<size_t>(index);
      window.rejects.push_back({i, {window.records[i].place, window.records[i].id, std::move(reason)}});
      window.entries[i].refused = true;
      window.records[i] = {};
    }
    // A corpus reject before record i was read before that record was.
    std::stable_sort(window.rejects.begin(), window.rejects.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < window.records.size(); ++i) {
      auto& [outcome, asked] = plan.records[i];
      complete += !outcome.answers.empty() && asked == 0;
      window.entries[i].outcome = std::move(outcome);
      window.entries[i].open = asked;
      window.entries[i].keyed = std::move(keyed[i]);
    }
    for (Stack& stack : plan.stacks) stack.window = window.number;
    window.open = std::ssize(plan.stacks);
    window.stacks = std::move(plan.stacks);
  }
  count([&](PipelineStats& stats) {
    stats.plan_seconds += seconds;
    stats.decoded += complete;
  });
}

/// Answers of records that are complete before those in front of them.
void Pipeline::take_ahead(Window& from, Window& to) {
  for (size_t i = from.passed_on; i < from.entries.size(); ++i) {
    Entry& entry = from.entries[i];
    if (entry.kept || entry.open > 0) continue;
    const size_t before = to.ahead.size();
    for (size_t q = 0; q < entry.keyed.keys.size(); ++q)
      if (entry.keyed.decodes(q)) to.ahead.emplace_back(entry.keyed.keys[q], entry.outcome.answers[q]);
    entry.kept = to.ahead.size() > before;
    to.ahead_records += entry.kept;
  }
}

/// The first records of the oldest window, as far as they are complete. Of others that are, the answers.
void Pipeline::pass_on_complete() {
  // A run that is resumed after them plans the others by themselves, which may not change their answers.
  const auto oldest = windows_.find(next_number_);
  if (oldest == windows_.end() || planner_.scope() == AnswerScope::prompt) return;
  Window& window = oldest->second;
  const size_t begin = window.passed_on;
  size_t end = begin;
  while (end < window.entries.size() && window.entries[end].open == 0) ++end;
  Window part;
  const auto move_out = [&](auto& from, auto& to) {
    to.assign(std::make_move_iterator(from.begin() + static_cast<ptrdiff_t>(begin)),
              std::make_move_iterator(from.begin() + static_cast<ptrdiff_t>(end)));
  };
  move_out(window.records, part.records);
  move_out(window.entries, part.entries);
  const auto rest = std::ranges::find_if(window.rejects, [&](const auto& each) { return each.first >= end; });
  for (auto reject = window.rejects.begin(); reject != rest; ++reject)
    part.rejects.emplace_back(reject->first - begin, std::move(reject->second));
  window.rejects.erase(window.rejects.begin(), rest);
  if (end > begin) passed_on_to_ = part.entries.back().end;
  part.end = passed_on_to_;
  window.passed_on = end;
  for (auto& [_, each] : windows_) take_ahead(each, part);
  if (end == begin && part.ahead.empty()) return;
  if (!finished_.push(std::move(part))) rethrow();
  passed_on_at_ = Clock::now();
}

void Pipeline::emit_behind(const Emit& emit, const Refuse& refuse) {
  while (std::optional<Window> window = finished_.pop()) {
    double seconds = 0;
    {
      const Stopwatch watch(seconds);
      emit_window(*window, emit, refuse);
    }
    count([&](PipelineStats& stats) { stats.emit_seconds += seconds; });
  }
}

void Pipeline::emit_window(Window& window, const Emit& emit, const Refuse& refuse) {
  auto reject = window.rejects.begin();
  int64_t records = 0, answers = 0, reused = 0, taken = 0, no_longer_ahead = 0;
  for (size_t i = window.passed_on; i <= window.records.size(); ++i) {
    for (; reject != window.rejects.end() && reject->first == i; ++reject) refuse(reject->second);
    if (i == window.records.size() || window.entries[i].refused) continue;
    Entry& entry = window.entries[i];
    reused += known.complete(entry.keyed, entry.outcome.answers);
    taken += std::ranges::count(entry.keyed.taken, true);
    no_longer_ahead += entry.kept;
    for (const Answer& answer : entry.outcome.answers) answers += count_answers(answer);
    emit(window.records[i], entry.outcome);
    ++records;
  }
  for (const auto& [key, answer] : window.ahead) known.store->keep(key, answer);
  count([&](PipelineStats& stats) {
    stats.ahead += window.ahead_records - no_longer_ahead;
    stats.records += records;
    stats.answers += answers - reused - taken;
    stats.reused += reused;
    stats.trusted += taken;
    for (const auto& [_, rejected] : window.rejects) stats.rejects += rejected.records;
  });
  if (on_window) on_window(window.end);
}

}  // namespace sheaf

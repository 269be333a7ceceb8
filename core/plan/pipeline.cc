#include "core/plan/pipeline.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/stopwatch.h"

namespace sheaf {
namespace {

// A window of long documents has fewer rows, so that memory is bounded.
constexpr size_t kMostBytes = 32 << 20;

}  // namespace

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
    reader = std::thread([&] {
      guard([&] { read_ahead(); });
      planned_.close();
    });
    writer = std::thread([&] {
      guard([&] { emit_behind(emit, refuse); });
      finished_.close();
    });
    for (size_t i = 1; i < lanes_.size(); ++i)
      others.emplace_back([this, i] { guard([&] { decode(lanes_[i]); }); });
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

/// Takes out of the records what is known or will be once the rows before them are emitted. `lost`: keys that
/// will not.
void Pipeline::leave_out_known(Window& window, std::vector<ReadyRecord>& records, const Keys& lost) {
  for (Entry& entry : window.entries) {
    entry.keys.clear();
    entry.known.clear();
  }
  if (!known || planner_.scope() == AnswerScope::prompt) return;
  const bool together = planner_.scope() == AnswerScope::record;
  Keys here;
  for (size_t i = 0; i < records.size(); ++i) {
    if (!records[i].refused.empty()) continue;
    RecordParts& parts = records[i].parts;
    std::vector<AnswerKey>& keys = window.entries[i].keys = known->keys(window.records[i], parts, together);
    std::vector<bool> found;
    for (const AnswerKey& key : keys) {
      const std::lock_guard lock(mutex_);
      found.push_back(!lost.contains(key) &&
                      (here.contains(key) || to_come_.contains(key) || known->knows(key)));
    }
    if (together && std::ranges::find(found, false) != found.end()) found.assign(found.size(), false);
    here.insert(keys.begin(), keys.end());
    if (std::ranges::find(found, true) == found.end()) continue;
    window.entries[i].known = parts.known = std::move(found);
  }
}

Plan Pipeline::make_plan(Window& window) {
  Keys lost;
  while (true) {
    std::vector<ReadyRecord> records = make_ready(task_, window.records);
    leave_out_known(window, records, lost);
    Plan plan = planner_.plan(std::move(records));
    // A record that is refused or cut has no answers that others could take.
    std::vector<bool> kept(window.records.size(), true);
    for (const auto& [index, _] : plan.refused) kept[static_cast<size_t>(index)] = false;
    for (size_t i = 0; i < kept.size(); ++i) {
      if (kept[i] && plan.records[i].parts == 1 && plan.records[i].cut_tokens == 0) continue;
      for (const AnswerKey& key : std::exchange(window.entries[i].keys, {})) lost.insert(key);
      window.entries[i].known.clear();
    }
    const bool missed = !lost.empty() && std::ranges::any_of(window.entries, [&](const Entry& entry) {
      for (size_t q = 0; q < entry.known.size(); ++q)
        if (entry.known[q] && lost.contains(entry.keys[q])) return true;
      return false;
    });
    if (!missed) return plan;
  }
}

void Pipeline::plan_window(Window& window) {
  double seconds = 0;
  int64_t complete = 0;  // records of which nothing has to be decoded
  {
    const Stopwatch watch(seconds);
    Plan plan = make_plan(window);
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
      const PlannedRecord& planned = plan.records[i];
      Outcome& outcome = window.entries[i].outcome;
      outcome.answers.resize(static_cast<size_t>(planned.slots));
      outcome.parts = planned.parts;
      outcome.document_tokens = planned.document_tokens;
      outcome.prompt_tokens = planned.prompt_tokens;
      outcome.cut_tokens = planned.cut_tokens;
      window.entries[i].open = planned.asked;
      complete += planned.slots > 0 && planned.asked == 0;
    }
    for (Stack& stack : plan.stacks) stack.window = window.number;
    window.open = std::ssize(plan.stacks);
    window.stacks = std::move(plan.stacks);
  }
  count([&](PipelineStats& stats) {
    stats.plan_seconds += seconds;
    stats.decoded += complete;
    for (const Entry& entry : window.entries) to_come_.insert(entry.keys.begin(), entry.keys.end());
  });
}

/// Answers of records that are complete before those in front of them.
void Pipeline::take_ahead(Window& from, Window& to) {
  for (size_t i = from.passed_on; i < from.entries.size(); ++i) {
    Entry& entry = from.entries[i];
    if (entry.kept || entry.open > 0) continue;
    const size_t before = to.ahead.size();
    for (size_t q = 0; q < entry.keys.size(); ++q)
      if (entry.known.empty() || !entry.known[q])
        to.ahead.emplace_back(entry.keys[q], entry.outcome.answers[q]);
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
  if (known)
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

/// Fills in the answers that were known, and keeps all of them for the records that follow.
void Pipeline::take_known(Entry& entry) {
  int64_t reused = 0;
  for (size_t q = 0; q < entry.keys.size(); ++q) {
    const AnswerKey& key = entry.keys[q];
    Answer& answer = entry.outcome.answers[q];
    if (!entry.known.empty() && entry.known[q]) {
      std::optional<Answer> found = known->find(key);
      if (!found) fail("a known answer is gone");
      answer = *std::move(found);
      reused += !known->was_kept(key);
    }
    known->add(key, answer);
  }
  count([&](PipelineStats& stats) {
    stats.reused += reused;
    stats.answers -= reused;
    for (const AnswerKey& key : entry.keys) to_come_.erase(key);
  });
}

void Pipeline::emit_window(Window& window, const Emit& emit, const Refuse& refuse) {
  auto reject = window.rejects.begin();
  int64_t records = 0, answers = 0, no_longer_ahead = 0;
  for (size_t i = window.passed_on; i <= window.records.size(); ++i) {
    for (; reject != window.rejects.end() && reject->first == i; ++reject) refuse(reject->second);
    if (i == window.records.size() || window.entries[i].refused) continue;
    Entry& entry = window.entries[i];
    if (known) take_known(entry);
    no_longer_ahead += entry.kept;
    answers += std::ssize(entry.outcome.answers);
    emit(window.records[i], entry.outcome);
    ++records;
  }
  for (const auto& [key, answer] : window.ahead) known->keep(key, answer);
  count([&](PipelineStats& stats) {
    stats.ahead += window.ahead_records - no_longer_ahead;
    stats.records += records;
    stats.answers += answers;
    for (const auto& [_, rejected] : window.rejects) stats.rejects += rejected.records;
  });
  if (on_window) on_window(window.end);
}

}  // namespace sheaf

#include "io/jobs/prefill_job.h"

#include <deque>
#include <optional>
#include <variant>

#include "core/base/error.h"
#include "core/base/stopwatch.h"
#include "core/plan/planner.h"
#include "io/jobs/engines.h"

namespace sheaf {
namespace {

/// What a stack shares with other prompts, in a stack of its own; nothing where there is nothing.
std::optional<Stack> shared_part(const Stack& stack) {
  Stack part;
  std::vector<SegmentId> places(stack.segments.size(), -1);
  for (size_t i = 0; i < stack.segments.size(); ++i) {
    Segment segment = stack.segments[i];
    bool whole = segment.shared && !segment.tokens.empty();
    for (Sight& sight : segment.sees) {
      sight.segment = places[static_cast<size_t>(sight.segment)];
      whole = whole && sight.segment >= 0;
    }
    if (whole) places[i] = part.add(std::move(segment));
  }
  if (part.segments.empty()) return std::nullopt;
  return part;
}

/// The shared parts of all prompts of a corpus, one after the other.
class SharedParts {
 public:
  SharedParts(Corpus& corpus, Task& task, Planner& planner, int32_t window, PrefillEnd& end)
      : corpus_(corpus), task_(task), planner_(planner), window_(window), end_(end) {}

  std::optional<Stack> next() {
    while (parts_.empty() && more_) read_window();
    if (parts_.empty()) return std::nullopt;
    Stack part = std::move(parts_.front());
    parts_.pop_front();
    return part;
  }

 private:
  void read_window() {
    std::vector<Record> records;
    while (std::ssize(records) < window_) {
      auto read = corpus_.next();
      more_ = read.has_value();
      if (!more_) break;
      if (auto* record = std::get_if<Record>(&*read))
        records.push_back(std::move(*record));
      else
        refuse_record(std::get<Reject>(*read));
    }
    const Plan plan = planner_.plan(make_ready(task_, records));
    for (const auto& [record, reason] : plan.refused)
      refuse_record({records[static_cast<size_t>(record)].place, nullptr, reason});
    end_.records += std::ssize(records) - std::ssize(plan.refused);
    for (const Stack& stack : plan.stacks)
      if (auto part = shared_part(stack)) parts_.push_back(std::move(*part));
  }

  void refuse_record(const Reject& reject) {
    if (end_.rejects == 0)
      end_.first_reject = fmt::format("{}:{}: {}", reject.place.file, reject.place.row, reject.reason);
    end_.rejects += reject.records;
  }

  Corpus& corpus_;
  Task& task_;
  Planner& planner_;
  int32_t window_;
  PrefillEnd& end_;
  bool more_ = true;
  std::deque<Stack> parts_;
};

}  // namespace

PrefillEnd prefill_job(OpenedJob& opened, RunListener& listener) {
  const Job& job = opened.job();
  if (job.engine.kv_store.path.empty())
    refuse("{}: the job has no store of keys and values; set engine.kv_store to a folder", job.file);
  Engines engines(opened, {.predict = true, .store = Engines::Use::Store::filled});
  if (engines.size() > 1) refuse("sheaf prefill uses one device; set engine.device to one, such as cuda:0");
  Engine& engine = *engines.pointers().front();
  const auto task = opened.task(job);
  Planner planner(make_builder(job.method), opened.limits({&engine}));
  const auto corpus = opened.corpus();
  PrefillEnd end;
  SharedParts parts(*corpus, *task, planner, job.engine.window, end);
  listener.started(corpus->records_expected());
  engine.on_step = [&](const EngineStats& stats) {
    listener.step({end.records, end.rejects, stats.tokens(), job.cost.usd_per_hour / 3600});
  };
  {
    const Stopwatch watch(end.seconds);
    end.finished = engine.run([&] { return parts.next(); }, [](Stack&&, std::vector<Answer>&&) {});
    engines.store()->flush();
  }
  listener.ended();
  for (const std::string& notice : engines.store()->take_notices()) listener.note(notice);
  end.computed_tokens = engine.stats().tokens();
  end.read_tokens = engine.stats().read_tokens;
  end.store = engines.store()->use();
  if (end.finished && end.records > 0 && end.computed_tokens + end.read_tokens == 0)
    refuse(
        "{}: method.name {} does not share documents between prompts, so sheaf has nothing to keep; use "
        "ippd, prefix or "
        "another method that does",
        job.file, job.method.name);
  return end;
}

}  // namespace sheaf

#pragma once
#include <exception>
#include <map>
#include <string>

#include "core/base/bounded_queue.h"
#include "core/engine/engine.h"
#include "core/plan/known_answers.h"

namespace sheaf {

struct PipelineStats {
  int64_t records = 0;  ///< records that gave answers
  int64_t decoded = 0;  ///< records whose answers are complete, written or not yet
  int64_t answers = 0;  ///< of the records that were passed on, without those that were known
  int64_t reused = 0;   ///< answers that were known
  int64_t trusted = 0;  ///< answers that the task had (task.trust)
  int64_t ahead = 0;    ///< records without a row yet whose answers were kept (AnswerStore::keep)
  int64_t rejects = 0;
  int64_t windows = 0;
  int64_t rows_read = 0;             ///< of the corpus, skipped ones counted
  std::optional<double> share_read;  ///< of the corpus, where that can be told
  double read_seconds = 0;
  double plan_seconds = 0;  ///< tokenizing, binning, stacking
  double emit_seconds = 0;  ///< answers to rows, writing
};

/// A corpus through one or more engines: reads windows, plans them, feeds the engines, and hands the answers
/// back in input order. Reading and planning are ahead of the engines on a thread of their own, and emitting
/// is behind them on another, so that no engine waits for either. Each engine takes a window when it has none
/// left; at the end of the corpus it takes prompts that wait for another. An engine whose device fails gives
/// its prompts to the others.
class Pipeline {
 public:
  using Emit = std::function<void(const Record& record, const Outcome& outcome)>;
  using Refuse = std::function<void(const Reject& reject)>;

  Pipeline(Corpus& corpus, Task& task, Planner& planner, Engine& engine, int32_t window_rows)
      : Pipeline(corpus, task, planner, std::vector<Engine*>{&engine}, window_rows) {}
  Pipeline(Corpus& corpus, Task& task, Planner& planner, const std::vector<Engine*>& engines,
           int32_t window_rows);

  /// Returns false when interrupted. Rows and rejects come in input order, in groups (on_window), on one
  /// thread that is not the caller's.
  bool run(const Emit& emit, const Refuse& refuse);

  PipelineStats stats() const;
  /// Of one engine, or of all together, as of their last steps.
  EngineStats engine_stats(size_t engine) const;
  EngineStats engine_stats() const;
  /// Comes after every step of an engine, on its thread; those of all engines come one after the other.
  std::function<void(size_t engine, const EngineStats& of_all)> on_step;
  /// An engine failed, and the others continue without it. Comes on its thread, and never during on_step.
  std::function<void(size_t engine, const std::string& why)> on_failed;
  /// Comes after the last row and reject of every window, and every few seconds after those of its first
  /// records that are complete, unless answers depend on other records. `position`: the number of the corpus
  /// record after them; it may come again with answers to keep. On the thread of the rows.
  std::function<void(int64_t position)> on_window;
  /// How long the complete records of a window wait for the others before they are passed on.
  std::chrono::milliseconds between_groups = std::chrono::seconds(2);
  KnownAnswers known;
  /// Sees every stack just before the engine gets it.
  std::function<void(const Stack& stack, const std::vector<Record>& records)> on_stack;

 private:
  using Clock = std::chrono::steady_clock;
  /// What becomes of a record.
  struct Entry {
    int64_t end = 0;  ///< the corpus record after it
    Outcome outcome = {};
    int32_t open = 0;              ///< answers still to come
    Clock::time_point begun = {};  ///< when the engine took the record
    bool refused = false;
    KeyedAnswers keyed = {};
    bool kept = false;  ///< its answers were kept ahead
  };
  struct Window {
    int64_t number = 0;
    std::vector<Record> records;
    std::vector<Entry> entries;  ///< one for each record
    size_t passed_on = 0;        ///< records that were emitted before the others were complete
    std::vector<Stack> stacks;   ///< until the engine takes them
    std::vector<std::pair<AnswerKey, Answer>> ahead;  ///< answers of later records, to be kept
    int64_t ahead_records = 0;                        ///< records that `ahead` has answers of
    int64_t open = 0;                                 ///< prompts still to come
    /// In input order, with how many records come before each.
    std::vector<std::pair<size_t, Reject>> rejects;
    int64_t end = 0;  ///< the corpus record after it
  };

  /// An engine, and the prompts that wait for it.
  struct Lane {
    Engine* engine;
    std::deque<Stack> stacks = {};  ///< not yet taken by the engine
    size_t expected = 0;            ///< how many of the first stacks the engine was told of
    bool failed = false;            ///< decodes no more; the others take its stacks
    bool outside = false;           ///< the engine has called the pipeline and waits for it
    EngineStats stats = {};         ///< as of its last step
  };

  void read_ahead();
  std::optional<Window> read_window(bool& more);
  void plan_window(Window& window);
  void decode(Lane& lane);
  void count_step(Lane& lane, const EngineStats& stats);
  void give_up(Lane& lane, const std::string& why);
  bool wait_for_more(Lane& lane);
  bool has_room() const;
  bool take_from_others(Lane& lane, bool only_failed);
  std::optional<Stack> next_stack(Lane& lane);
  void take_answers(Stack&& stack, std::vector<Answer>&& answers);
  void pass_on_finished();
  void pass_on_complete();
  void take_ahead(Window& from, Window& to);
  void emit_behind(const Emit& emit, const Refuse& refuse);
  void emit_window(Window& window, const Emit& emit, const Refuse& refuse);
  /// Runs the body of a thread; what it throws is kept for the caller of run.
  void guard(const std::function<void()>& body);
  void rethrow();
  template <class Change>
  void count(Change&& change) {
    const std::lock_guard lock(mutex_);
    change(stats_);
  }

  Corpus& corpus_;
  Task& task_;
  Planner& planner_;
  int32_t window_rows_;
  BoundedQueue<Window> planned_, finished_;
  std::mutex lanes_mutex_;  ///< of what follows; may be held while mutex_ is taken
  std::condition_variable changed_;
  std::vector<Lane> lanes_;
  std::map<int64_t, Window> windows_;  ///< in the engines, by number
  int64_t next_number_ = 0;            ///< of the window to be passed on next
  bool all_planned_ = false;           ///< no more windows come
  bool stopped_ = false;               ///< by an interruption
  int32_t taking_ = 0;                 ///< engines that wait for the next window
  Clock::time_point passed_on_at_{};
  int64_t passed_on_to_ = 0;  ///< the corpus record after those that were passed on
  std::atomic<bool> failed_ = false;
  std::mutex steps_mutex_;    ///< calls of on_step and on_failed
  mutable std::mutex mutex_;  ///< of what follows, and of the lanes' stats
  std::exception_ptr error_;
  PipelineStats stats_;
};

}  // namespace sheaf

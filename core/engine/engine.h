#pragma once
#include <atomic>
#include <chrono>

#include "core/engine/batch_builder.h"
#include "core/engine/speculate.h"
#include "core/engine/stored_keys.h"

namespace sheaf {

struct EngineOptions {
  int32_t tokens_per_step = 128;  ///< decode rows first, the rest filled with prefill
  int32_t pages = 1024;           ///< of the key/value pool
  int32_t page_size = kPageSize;
  bool small_start = false;  ///< begin with fewer pages where the backend can add some later
  bool whole_pages = false;  ///< only whole pages of keys are shared (Residents); a backend may want it too
  int32_t prompts = 0;       ///< most that are decoded at once; 0: as many as there is room for
  float temperature = 0;
  int32_t top_k = 0;
  float top_p = 1;
  uint64_t seed = 0;
  int32_t assumed_tokens = 0;    ///< length of every answer, for planning without a model; 0: decode
  bool expected_rounds = false;  ///< later rounds are as long as they may well be, for planning
  KvStore* store = nullptr;      ///< keys and values that outlive the engine
  double seconds_per_token = 0;  ///< cost of prefill per token in seconds; 0: measure it
  StepObserver* observer = nullptr;
  Speculation speculation = {};
  const std::atomic<bool>* interrupted = nullptr;  ///< checked between steps
};

/// The decode loop: keeps stacks in flight, builds step batches, applies stop rules, retires answers at once
/// and refills. Where the backend takes several steps at once, the next is planned and started while the last
/// one runs, from the rows that do not wait for its picks.
class Engine {
 public:
  Engine(Backend& backend, const StopRules& rules, const EngineOptions& options);

  using Source = std::function<std::optional<Stack>()>;
  using Sink = std::function<void(Stack&& stack, std::vector<Answer>&& answers)>;

  /// Decodes every stack that `next` gives; `done` gets each when its last answer is complete, in no fixed
  /// order; of a stack with a second round, that round. Returns false when interrupted.
  bool run(const Source& next, const Sink& done);

  /// The stack will come before long: what a store has of it can be read meanwhile.
  void expect(const Stack& stack) { stored_.expect(stack, residents_.in_pages(stack), token_seconds()); }

  /// After run() threw: the stacks whose answers are not all there. This engine decodes nothing more.
  std::vector<Stack> take_back();

  /// Whether the pool could ever hold the stack.
  bool fits(const Stack& stack) const;

  const EngineStats& stats() const { return stats_; }
  int32_t pages() const { return most_pages_; }  ///< of the pool; fewer than asked where memory is short
  /// Fewer than asked where memory is short.
  int32_t tokens_per_step() const { return options_.tokens_per_step; }
  bool interrupted() const { return options_.interrupted && *options_.interrupted; }
  std::function<void(const EngineStats&)> on_step;

 private:
  /// A step that is planned or under way.
  struct Step {
    StepBatch batch;
    std::vector<OpenSlot*> wanted;  ///< whose next token each pick is, chains not counted
    std::vector<Picked> picked;
    std::vector<std::pair<Role, Resident*>> complete;  ///< by its rows, to be kept in the store
    std::chrono::steady_clock::time_point started;
  };

  // From the source to a step: stacks with room in the pool, rows of their answers, rows of their prompts.
  bool read_next(const Source& next);
  /// Returns how many rows a step planned now could hold, were it large enough.
  int64_t admit(const Source& next);
  void grow_pool();
  void propose();
  void add_decode_tokens(Step& step);
  void add_prefill_tokens(Step& step);
  void add_chains(Step& step, OpenSlot& slot);
  void add_rows(Flight& flight, SegmentId id, int32_t first, std::span<const TokenId> tokens);
  void want(Step& step, OpenSlot& slot);

  // The step itself.
  void start_step(const Sink& done);
  bool try_step(const StepBatch& batch, std::span<Picked> picked);
  void run_in_parts(const StepBatch& batch, std::span<Picked> picked);
  void finish_step(const Sink& done);
  void abandon_steps();
  void wait_for_store();
  double token_seconds() const;
  template <class Call>
  double call_backend(Call&& call);

  // From its picks to the sink.
  void apply(const Step& step, const Sink& done);
  size_t take(OpenSlot& slot, std::span<const Picked> picked);
  void take_token(OpenSlot& slot, const Picked& picked);
  void check_finite(const OpenSlot& slot, const Picked& picked) const;
  void take_listed(OpenSlot& slot, const Picked& picked);
  void close_slot(OpenSlot& slot, Ending ending);
  void close_rivals(const OpenSlot& slot);
  void finish_answer(OpenSlot& slot);
  void retire(const Sink& done);
  bool next_round(const Stack& stack, const std::vector<Answer>& answers);

  Backend& backend_;
  const StopRules& rules_;
  EngineOptions options_;
  PagePool pool_;
  int32_t most_pages_;  ///< most pages that the pool may grow to
  Residents residents_;
  StoredKeys stored_;
  EngineStats stats_;

  std::list<Flight> flights_;
  std::deque<Stack> next_rounds_;  ///< to be decoded before the source is asked for more
  std::optional<Stack> pending_;   ///< read from the source, waiting for room
  bool drained_ = false;
  bool short_of_pages_ = false;  ///< the next stack waits for the pool to grow
  int32_t open_prompts_ = 0;     ///< of open slots
  int32_t waiting_prompts_ = 0;  ///< of waiting slots
  int64_t backlog_ = 0;          ///< tokens of prompts that the next step could compute

  std::optional<Speculator> speculator_;
  Tokens fed_;  ///< to an answer in the step that is planned
  BatchBuilder builder_;
  int32_t row_limit_ = INT32_MAX;  ///< rows that a step's memory holds, as far as is known
  std::vector<Step> steps_;        ///< a ring, as many as the backend takes at once
  size_t oldest_ = 0;              ///< of those in flight
  size_t in_flight_ = 0;
  std::chrono::steady_clock::time_point left_backend_;
  std::chrono::steady_clock::time_point last_finished_;  ///< a step
};

}  // namespace sheaf

#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <vector>

#include "core/engine/backend.h"
#include "core/engine/residents.h"
#include "core/engine/step_batch.h"
#include "core/engine/stop_rules.h"
#include "core/segments/stack.h"

namespace sheaf {

struct Answer {
  Tokens tokens;  ///< as decoded, a delimiter included, an end-of-text token not
  Ending ending = Ending::length;
  double logprob = 0;  ///< of all decoded tokens, the ending one included
};

struct EngineOptions {
  int32_t rows_per_step = 128;  ///< decode rows first, the rest filled with prefill
  int32_t pages = 1024;         ///< of the key/value pool
  int32_t page_size = 16;
  float temperature = 0;
  int32_t top_k = 0;
  float top_p = 1;
  uint64_t seed = 0;
  int32_t assumed_tokens =
      0;  ///< not 0: an answer ends after so many tokens, as planning without a model assumes
  const std::atomic<bool>* interrupted = nullptr;  ///< checked between steps
};

struct EngineStats {
  int64_t steps = 0;
  int64_t prefill_rows = 0;
  int64_t decode_rows = 0;
  int64_t answers = 0;
  int64_t answer_tokens = 0;
  int64_t alone_rows = 0;  ///< rows that one prompt per question would have computed
  int32_t peak_pages = 0;
  double step_seconds = 0;  ///< inside the backend
  int64_t rows() const { return prefill_rows + decode_rows; }
};

/// The decode loop: keeps stacks in flight, builds step batches, applies stop rules, retires answers at once
/// and refills.
class Engine {
 public:
  Engine(Backend& backend, const StopRules& rules, const EngineOptions& options);

  using Source = std::function<std::optional<Stack>()>;
  using Sink = std::function<void(Stack&& stack, std::vector<Answer>&& answers)>;

  /// Decodes every stack that `next` gives; `done` gets each when its last answer is complete, in no fixed
  /// order. Returns false when interrupted.
  bool run(const Source& next, const Sink& done);

  /// Whether the pool could ever hold the stack.
  bool fits(const Stack& stack) const;

  const EngineStats& stats() const { return stats_; }
  bool interrupted() const { return options_.interrupted && *options_.interrupted; }
  std::function<void(const EngineStats&)> on_step;

 private:
  struct SlotState {
    Answer answer;
    AnswerTrie::Node node = AnswerTrie::root;
    bool open = true;
    bool waiting = false;  ///< its last token is to be fed in the next step
  };
  /// A stack being decoded.
  struct Flight {
    Stack stack;
    std::vector<Resident*> residents;            ///< per segment
    std::vector<bool> finished;                  ///< per segment
    std::vector<std::vector<int32_t>> prompted;  ///< per segment, the slots whose first token follows it
    std::vector<SlotState> slots;
    size_t next_segment = 0;  ///< the first one not wholly computed
    int32_t open_slots = 0;
  };
  struct Wanted {
    Flight* flight;
    int32_t slot;
  };

  void admit(const Source& next);
  void add_decode_rows();
  void add_prefill_rows();
  void add_rows(Flight& flight, SegmentId id, int32_t first, std::span<const TokenId> tokens);
  void want(Flight& flight, int32_t slot);
  void close_batch();
  void take(Wanted wanted, Picked picked);
  void close_slot(Flight& flight, int32_t slot, Ending ending);
  void finish_segments(Flight& flight);

  Backend& backend_;
  const StopRules& rules_;
  EngineOptions options_;
  PagePool pool_;
  Residents residents_;
  EngineStats stats_;

  std::list<Flight> flights_;
  std::optional<Stack> pending_;  ///< read from the source, waiting for room
  bool drained_ = false;
  int32_t open_slots_ = 0;

  StepBatch batch_;
  std::vector<Wanted> wanted_;
  struct Looked {
    Resident* resident;
    std::vector<TileRow> rows;
  };
  std::vector<Looked> looked_;  ///< residents that rows of this step look at
  std::unordered_map<uint64_t, size_t> looked_at_;
};

}  // namespace sheaf

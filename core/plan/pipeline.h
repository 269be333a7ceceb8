#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "core/engine/engine.h"
#include "core/plan/planner.h"
#include "core/task/item.h"

namespace sheaf {

struct PipelineStats {
  int64_t items = 0;    ///< rows that gave answers
  int64_t decoded = 0;  ///< rows whose answers are complete, written or not yet
  int64_t rejects = 0;
  int64_t windows = 0;
  double read_seconds = 0;
  double plan_seconds = 0;  ///< tokenizing, binning, stacking
  double emit_seconds = 0;  ///< answers to rows, writing
};

/// A corpus through the engine: reads windows, plans them, feeds the engine so that it never runs dry between
/// windows, and hands the answers back in input order.
class Pipeline {
 public:
  using Emit = std::function<void(const Item& item, const std::vector<Answer>& answers)>;
  using Refuse = std::function<void(const Reject& reject)>;

  Pipeline(Corpus& corpus, Planner& planner, Engine& engine, int32_t window_rows)
      : corpus_(corpus), planner_(planner), engine_(engine), window_rows_(window_rows) {}

  /// Returns false when interrupted. Rows and rejects come in input order, a window at a time.
  bool run(const Emit& emit, const Refuse& refuse);

  const PipelineStats& stats() const { return stats_; }
  /// Comes after the last row and reject of every window, with the number of the corpus row after it.
  std::function<void(int64_t position)> on_window;
  /// Sees every stack just before the engine gets it.
  std::function<void(const Stack& stack, const std::vector<Item>& items)> on_stack;

 private:
  struct Window {
    int64_t number = 0;
    std::vector<Item> items;
    std::vector<std::vector<Answer>> answers;  ///< per item and question
    std::vector<int32_t> open_of_item;         ///< answers still to come, per item
    std::vector<bool> refused;
    int64_t open = 0;                                ///< answers still to come
    std::vector<std::pair<size_t, Reject>> rejects;  ///< with how many items come before each, in input order
    int64_t end = 0;                                 ///< the corpus row after it
  };

  bool read_window();
  void emit_finished(const Emit& emit, const Refuse& refuse);

  Corpus& corpus_;
  Planner& planner_;
  Engine& engine_;
  int32_t window_rows_;
  bool drained_ = false;
  std::deque<Window> windows_;  ///< in flight, oldest first
  std::deque<Stack> stacks_;    ///< planned, not yet taken by the engine
  PipelineStats stats_;
};

}  // namespace sheaf

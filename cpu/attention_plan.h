#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/engine/step_batch.h"
#include "cpu/kv_pool.h"

namespace sheaf {

/// How the attention of a step is cut into work; every head, and every layer of one window, has the same
/// plan. A block holds rows that see the same spans, and reads each span once for all of them.
struct AttentionPlan {
  /// Keys of a span that lie in a row, at most kLongestRun.
  struct Run {
    int32_t first_key;
    int32_t keys;
    int64_t place;
  };
  static constexpr int32_t kLongestRun = 256;

  /// A row looking at the first `visible` keys of a span, or at those of them that its window does not hide;
  /// key j is key offset + j of all that the row sees.
  struct Look {
    int32_t row_in_block;
    int32_t visible;
    int32_t offset;  ///< negative where a window hides the first keys
  };

  /// Keys of a panel that one row sees, where its window begins before that of other rows of its block.
  struct Edge {
    int32_t row_in_block;
    int32_t hidden;  ///< keys of the panel before them
    int32_t keys;
    int32_t at;     ///< the first among all keys that the row sees
    int64_t place;  ///< of the panel
  };

  /// A span and the rows of a block that look at it, those that see most first. Runs begin where the windows
  /// of all these rows have begun; the keys before are edges.
  struct Part {
    int32_t first_run, runs;
    int32_t first_look, looks;
    int32_t first_edge, edges;
  };

  struct Block {
    int32_t first_row, rows;  ///< in `rows`
    int32_t first_part, parts;
    int32_t most_keys;  ///< of any row
  };

  /// A span as one row sees it: the same as a Look, in the row's own list.
  struct RowSpan {
    int32_t first_run, runs;  ///< of the whole span
    int32_t first, visible;   ///< it sees keys [first, visible)
    int32_t offset;
    bool apart;  ///< as AttentionTile has it
  };

  std::vector<int32_t> rows;  ///< rows of the batch in the order of the blocks
  std::vector<int32_t> keys;  ///< keys that each row of the batch sees
  std::vector<Run> runs;
  std::vector<Look> looks;
  std::vector<Edge> edges;
  std::vector<Part> parts;
  std::vector<Block> blocks;
  std::vector<int32_t> first_span;  ///< [rows of the batch + 1], index into row_spans
  std::vector<RowSpan> row_spans;
  DocumentSoftmax document_softmax;  ///< of each row over the keys of its spans that are apart
};

/// Looks of a part that see at least `keys` keys: they come first.
int32_t looks_that_see(const AttentionPlan& plan, const AttentionPlan::Part& part, int32_t keys);

/// Calls body(from, to, key, keys, place) for looks [from, to) of a part and the panels of keys [key, key +
/// keys), which lie at `place`: first for those that see a whole run, then for those that see as many of its
/// panels, the last perhaps in part.
template <class Body>
void each_piece(const AttentionPlan& plan, const AttentionPlan::Part& part, Body&& body) {
  for (int32_t r = 0; r < part.runs; ++r) {
    const AttentionPlan::Run& run = plan.runs[static_cast<size_t>(part.first_run + r)];
    const int32_t whole = looks_that_see(plan, part, run.first_key + run.keys);
    if (whole > 0) body(0, whole, run.first_key, run.keys, run.place);
    const int32_t some = looks_that_see(plan, part, run.first_key + 1);
    for (int32_t from = whole, to = 0; from < some; from = to) {
      const int32_t seen = plan.looks[static_cast<size_t>(part.first_look + from)].visible - run.first_key;
      const auto keys = static_cast<int32_t>(round_up_to_panel(seen));
      to = looks_that_see(plan, part, run.first_key + keys - static_cast<int32_t>(kPanel) + 1);
      body(from, to, run.first_key, keys, run.place);
    }
  }
}

/// Of the layers whose window is `window` (0: none). `group` query heads share a key/value head; `kv_heads` ×
/// blocks is the number of pieces to share among threads.
AttentionPlan plan_attention(const StepBatch& batch, const KvPool& pool, int32_t window, int32_t group,
                             int32_t kv_heads, int threads);

}  // namespace sheaf

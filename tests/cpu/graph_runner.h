#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/engine/backend.h"
#include "core/engine/step_batch.h"
#include "tests/random_tokens.h"

namespace sheaf::test {

/// A run of tokens at consecutive positions that sees whole earlier segments (ascending) and its own past.
struct GraphSegment {
  Tokens tokens;
  int32_t position = 0;
  std::vector<int32_t> sees;
  std::vector<int32_t> apart = {};  ///< segments among `sees` that it weighs by `softmax`
  DocumentSoftmax softmax = {};     ///< one for all segments of a graph
};
using Graph = std::vector<GraphSegment>;

/// Logits of every token: [segment][index][vocab].
using GraphLogits = std::vector<std::vector<std::vector<float>>>;

/// A graph of `count` segments with random lengths (also 0), gaps between positions, and random `sees`.
inline Graph random_graph(std::mt19937& random, int32_t count, int32_t most_tokens, int32_t vocab) {
  Graph graph;
  for (int32_t s = 0; s < count; ++s) {
    GraphSegment segment;
    segment.tokens =
        random_tokens(random, std::uniform_int_distribution<int32_t>(0, most_tokens)(random), vocab);
    segment.position = std::uniform_int_distribution<int32_t>(0, 50)(random);
    for (int32_t other = 0; other < s; ++other)
      if (random() % 3 != 0) segment.sees.push_back(other);
    graph.push_back(std::move(segment));
  }
  return graph;
}

/// Has segments weigh about half of those that they see apart.
inline Graph weighed_apart(std::mt19937& random, Graph graph, const DocumentSoftmax& softmax) {
  for (GraphSegment& segment : graph) {
    segment.softmax = softmax;
    for (const int32_t other : segment.sees)
      if (random() % 2 == 0) segment.apart.push_back(other);
  }
  return graph;
}

/// How a graph is run: everything here must leave the logits as they are, to the bit.
struct RunLayout {
  std::mt19937::result_type seed = 0;
  int32_t page_size = 16;
  int32_t most_rows = 1 << 30;  ///< rows per step are random up to this
  bool shuffle_pages = false;
  bool shuffle_rows = false;  ///< mix the segments' rows in a step
};

/// Runs a graph on a backend whose pool it allocates, and returns the logits of every token.
class GraphRunner {
 public:
  GraphRunner(Backend& backend, const Graph& graph, const RunLayout& layout)
      : backend_(backend), graph_(graph), layout_(layout), random_(layout.seed) {
    int32_t pages = 0;
    for (const GraphSegment& segment : graph) pages += pages_of(segment) + 1;
    std::vector<int32_t> numbers(static_cast<size_t>(pages));
    std::iota(numbers.begin(), numbers.end(), 0);
    if (layout.shuffle_pages) std::shuffle(numbers.begin(), numbers.end(), random_);
    size_t next = 0;
    for (const GraphSegment& segment : graph)
      for (int32_t i = 0; i < pages_of(segment) + 1; ++i) {
        if (i == 0) pages_.emplace_back();
        pages_.back().push_back(numbers[next++]);
      }
    backend.allocate_kv(pages, layout.page_size);
  }

  GraphLogits run() {
    GraphLogits logits(graph_.size());
    for (size_t s = 0; s < graph_.size(); ++s) logits[s].resize(graph_[s].tokens.size());
    written_.assign(graph_.size(), 0);
    for (;;) {
      std::vector<std::pair<int32_t, int32_t>> rows = choose_rows();
      if (rows.empty()) return logits;
      const StepBatch batch = make_batch(rows);
      std::vector<Picked> picked(rows.size());
      const auto vocab = static_cast<size_t>(backend_.config().vocab);
      std::vector<float> step_logits(rows.size() * vocab);
      backend_.step(batch, picked, step_logits);
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto first = step_logits.begin() + static_cast<std::ptrdiff_t>(i * vocab);
        logits[static_cast<size_t>(rows[i].first)][static_cast<size_t>(rows[i].second)] =
            std::vector<float>(first, first + static_cast<std::ptrdiff_t>(vocab));
      }
    }
  }

 private:
  int32_t pages_of(const GraphSegment& segment) const {
    return (static_cast<int32_t>(segment.tokens.size()) + layout_.page_size - 1) / layout_.page_size;
  }
  int32_t length(int32_t s) const {
    return static_cast<int32_t>(graph_[static_cast<size_t>(s)].tokens.size());
  }

  /// The rows of a step as (segment, index): a segment's next tokens, where all that it sees is written or in
  /// this step.
  std::vector<std::pair<int32_t, int32_t>> choose_rows() {
    std::vector<std::pair<int32_t, int32_t>> rows;
    std::vector<bool> complete(graph_.size());
    const int32_t budget = std::uniform_int_distribution<int32_t>(1, std::max(1, layout_.most_rows))(random_);
    for (size_t s = 0; s < graph_.size(); ++s) {
      bool ready = true;
      for (const int32_t other : graph_[s].sees) ready = ready && complete[static_cast<size_t>(other)];
      const int32_t left = length(static_cast<int32_t>(s)) - written_[s];
      int32_t count = ready ? std::min(left, budget - static_cast<int32_t>(rows.size())) : 0;
      // Now and then leave some for later although there is room.
      if (layout_.shuffle_rows && count > 1 && random_() % 4 == 0) count /= 2;
      for (int32_t i = 0; i < count; ++i) rows.emplace_back(static_cast<int32_t>(s), written_[s] + i);
      written_[s] += count;
      complete[s] = written_[s] == length(static_cast<int32_t>(s));
    }
    if (layout_.shuffle_rows) std::shuffle(rows.begin(), rows.end(), random_);
    return rows;
  }

  StepBatch make_batch(const std::vector<std::pair<int32_t, int32_t>>& rows) const {
    StepBatch batch;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto [s, index] = rows[i];
      const GraphSegment& segment = graph_[static_cast<size_t>(s)];
      batch.tokens.push_back(segment.tokens[static_cast<size_t>(index)]);
      batch.positions.push_back(segment.position + index);
      const int32_t page = pages_[static_cast<size_t>(s)][static_cast<size_t>(index / layout_.page_size)];
      batch.kv_slots.push_back(page * layout_.page_size + index % layout_.page_size);
      Pick pick;
      pick.row = static_cast<int32_t>(i);
      batch.picks.push_back(pick);
    }
    // One tile per segment, or two, in ascending order, which is the order of every row's keys.
    for (int32_t s = 0; s < static_cast<int32_t>(graph_.size()); ++s) {
      batch.document_softmax = graph_[static_cast<size_t>(s)].softmax;
      for (const bool apart : {false, true}) {
        AttentionTile tile{static_cast<int32_t>(batch.spans.size()),
                           static_cast<int32_t>(batch.tile_rows.size()), 0, apart};
        for (size_t i = 0; i < rows.size(); ++i) {
          const GraphSegment& segment = graph_[static_cast<size_t>(rows[i].first)];
          const bool seen = std::ranges::count(segment.sees, s) > 0;
          if ((!seen && rows[i].first != s) || (std::ranges::count(segment.apart, s) > 0) != apart) continue;
          batch.tile_rows.push_back({static_cast<int32_t>(i), seen ? length(s) : rows[i].second + 1});
          ++tile.row_count;
        }
        if (!apart || tile.row_count > 0) batch.tiles.push_back(tile);
      }
      batch.spans.push_back({static_cast<int32_t>(batch.pages.size()), written_[static_cast<size_t>(s)],
                             graph_[static_cast<size_t>(s)].position});
      const auto& pages = pages_[static_cast<size_t>(s)];
      batch.pages.insert(batch.pages.end(), pages.begin(), pages.end());
    }
    return batch;
  }

  Backend& backend_;
  const Graph& graph_;
  RunLayout layout_;
  std::mt19937 random_;
  std::vector<std::vector<int32_t>> pages_;
  std::vector<int32_t> written_;
};

inline GraphLogits run_graph(Backend& backend, const Graph& graph, const RunLayout& layout) {
  return GraphRunner(backend, graph, layout).run();
}

}  // namespace sheaf::test

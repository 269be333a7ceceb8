#pragma once
#include <random>
#include <vector>

#include "core/engine/step_batch.h"

namespace sheaf::test {

/// A step over random trees of segments: who sees which span, on pages in random order.
struct RandomLooks {
  StepBatch batch;
  int32_t pages = 0;  ///< of the pool
};

struct LooksShape {
  int32_t page_size = 16;
  int32_t trees = 4;
  int32_t longest = 200;     ///< keys of a span above the leaves
  int32_t children = 5;      ///< of a node, at most
  int32_t longest_run = 40;  ///< rows of a leaf
  int32_t most_rows = 800;
};

class LooksMaker {
 public:
  LooksMaker(std::mt19937& random, const LooksShape& shape) : random_(random), shape_(shape) {}

  RandomLooks make() {
    for (int32_t tree = 0; tree < shape_.trees; ++tree) grow({}, 0, 0);
    std::vector<int32_t> order(static_cast<size_t>(looks_.pages));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::shuffle(order.begin(), order.end(), random_);
    StepBatch& batch = looks_.batch;
    for (int32_t& page : batch.pages) page = order[static_cast<size_t>(page)];
    for (size_t span = 0; span < seen_.size(); ++span) {
      if (seen_[span].empty()) continue;
      batch.tiles.push_back({static_cast<int32_t>(span), static_cast<int32_t>(batch.tile_rows.size()),
                             static_cast<int32_t>(seen_[span].size())});
      batch.tile_rows.insert(batch.tile_rows.end(), seen_[span].begin(), seen_[span].end());
    }
    return std::move(looks_);
  }

 private:
  int32_t pick(int32_t low, int32_t high) { return std::uniform_int_distribution(low, high)(random_); }

  int32_t add_span(int32_t keys, int32_t position) {
    StepBatch& batch = looks_.batch;
    batch.spans.push_back({static_cast<int32_t>(batch.pages.size()), keys, position});
    for (int32_t key = 0; key < keys; key += shape_.page_size) batch.pages.push_back(looks_.pages++);
    seen_.emplace_back();
    return static_cast<int32_t>(batch.spans.size()) - 1;
  }

  void grow(std::vector<int32_t> path, int depth, int32_t position) {
    if (depth > 0 && (depth == 3 || pick(0, 2) == 0)) {
      const int32_t rows = pick(0, 2) == 0 ? pick(1, shape_.longest_run) : 1;
      const int32_t before = pick(0, 3) == 0 ? pick(0, shape_.longest) : pick(0, 20);
      const int32_t own = add_span(before + rows, position);
      for (int32_t i = 0; i < rows; ++i) {
        const int32_t row = looks_.batch.rows();
        looks_.batch.tokens.push_back(0);
        looks_.batch.positions.push_back(position + before + i);
        for (int32_t span : path)
          seen_[static_cast<size_t>(span)].push_back(
              {row, looks_.batch.spans[static_cast<size_t>(span)].keys});
        seen_[static_cast<size_t>(own)].push_back({row, before + i + 1});
      }
      return;
    }
    const int32_t keys = pick(1, shape_.longest);
    path.push_back(add_span(keys, position));
    const int32_t children = pick(1, shape_.children);
    for (int32_t i = 0; i < children && looks_.batch.rows() < shape_.most_rows; ++i)
      grow(path, depth + 1, position + keys);
  }

  std::mt19937& random_;
  LooksShape shape_;
  RandomLooks looks_;
  std::vector<std::vector<TileRow>> seen_;  ///< per span
};

inline RandomLooks make_random_looks(std::mt19937& random, const LooksShape& shape) {
  return LooksMaker(random, shape).make();
}

/// Has rows weigh some of the spans that they see apart: all rows that look at one, or every third.
inline void weigh_apart(std::mt19937& random, const DocumentSoftmax& softmax, StepBatch& batch) {
  batch.document_softmax = softmax;
  std::vector<AttentionTile> tiles;
  std::vector<TileRow> rows;
  for (const AttentionTile& tile : batch.tiles) {
    const auto kind = random() % 4;  // 0: apart, 1: for some rows, else: for none
    for (const bool apart : {false, true}) {
      AttentionTile part{tile.span, static_cast<int32_t>(rows.size()), 0, apart};
      for (int32_t i = 0; i < tile.row_count; ++i)
        if ((kind == 0 || (kind == 1 && i % 3 == 0)) == apart)
          rows.push_back(batch.tile_rows[static_cast<size_t>(tile.first_row + i)]);
      part.row_count = static_cast<int32_t>(rows.size()) - part.first_row;
      if (part.row_count > 0) tiles.push_back(part);
    }
  }
  batch.tiles = std::move(tiles);
  batch.tile_rows = std::move(rows);
}

}  // namespace sheaf::test

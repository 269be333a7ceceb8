#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "core/engine/step_batch.h"
#include "cuda/attention/attention.h"

namespace sheaf::cuda {

/// A step's attention cut into blocks of work, the same for every layer of one window.
struct AttentionPlan {
  std::vector<int32_t> rows;            ///< [rows of all items]
  std::vector<AttentionPage> pages;     ///< [pages of all items]
  std::vector<int32_t> page_positions;  ///< [pages of all items], of the first key
  int32_t window = 0;
  std::vector<AttentionItem> items;  ///< small blocks, then large ones
  int32_t small_items = 0;
  std::vector<AttentionItem>
      document_items;  ///< blocks over documents' keys, small ones first; each gives partial results
  int32_t small_document_items = 0;
  int32_t first_document_partial = 0;  ///< partial rows from here on are of document_items
  std::vector<int32_t> merged_rows;    ///< [merged rows]
  std::vector<int32_t> partial_begin;  ///< [merged rows + 1]
  std::vector<int32_t> partials;       ///< [partial rows of all merged rows]
  int32_t partial_rows = 0;
};

struct AttentionShape {
  int32_t group = 1;      ///< query heads of a key/value head
  int32_t page_size = 0;  ///< divides 64
  int32_t wanted = 0;     ///< blocks that fill the device: where there are fewer, long ones are cut
  bool fixed = false;     ///< how a row's pages make up partial results depends on its own pages alone
};

/// Finds the blocks. Rows that see the same spans before their own segment (its trunk) go into one block: the
/// trunk is read once for all of them, then each row's own keys. Where a block would be mostly empty and
/// others see the same long span, that span becomes blocks of its own and results are merged.
/// Pages that lie outside the windows of all rows of a block are left out. Keys of tiles that are apart have
/// blocks of their own.
using AttentionPlanner = std::function<void(const StepBatch& batch, int32_t window, AttentionPlan& plan)>;
/// A planner that keeps its memory from step to step.
AttentionPlanner make_attention_planner(AttentionShape shape);

}  // namespace sheaf::cuda

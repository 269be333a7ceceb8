#pragma once
#include <cstdint>
#include <cuda_runtime.h>

#include "cuda/base/floats.h"
#include "cuda/base/heads.h"

namespace sheaf::cuda {

/// A page of keys and values as the rows of a block see it: those in [first_row, last_row) see its first
/// min(keys, base + row) keys, the others none. Rows count from the block's `row_offset`.
struct AttentionPage {
  int32_t slot;  ///< of the first key
  int32_t keys;
  int32_t base;
  uint16_t first_row, last_row;
};
constexpr int32_t kWholePage = 1 << 30;  ///< a base that hides nothing
constexpr int32_t kAllRows = 0xffff;

/// A block of rows and the pages it goes over, in order.
struct AttentionItem {
  int32_t first_row;  ///< into rows
  int32_t row_count;
  int32_t row_offset;
  int32_t first_page;  ///< into pages
  int32_t page_count;
  int32_t first_partial;  ///< where its partial results go, in rows; -1: they are whole and go straight to
                          ///< the output
};

/// A key and value to be copied, as KeyCopy of a step has it.
struct SlotCopy {
  int32_t from, to;
};

struct AttentionInputs {
  const AttentionItem* items;  ///< [small_items + large_items], blocks of at most kSmallBlock queries, then
                               ///< blocks of at most kLargeBlock
  int32_t small_items, large_items;
  const int32_t* rows;           ///< [rows of all items], of the step
  const AttentionPage* pages;    ///< [pages of all items]
  int32_t page_size;             ///< divides 64
  const int32_t* merged_rows;    ///< [merged_count], rows with partial results
  const int32_t* partial_begin;  ///< [merged_count + 1] into partials
  const int32_t* partials;       ///< [partial rows of all merged rows], those of each one after the other
  int32_t merged_count;
  int32_t partial_rows;
  /// Each result is one chain of sums over the pages that its row sees, in order, relative to bases that its
  /// own pages decide: which other pages the block goes over, and where stages end, does not matter.
  bool in_order = false;
  const SlotCopy* copies = nullptr;  ///< [copy_count]
  int32_t copy_count = 0;
  const int32_t* seen_pages = nullptr;  ///< [seen_count], every page that some row sees
  int32_t seen_count = 0;
  /// A row sees keys less than so many positions before its own; 0: all that its pages let it see.
  int32_t window = 0;
  const int32_t* page_positions = nullptr;  ///< [pages of all items], of each page's first key
  const int32_t* row_positions = nullptr;   ///< [rows of the step]
};

/// Queries (rows × query heads of a key/value head) of a small and of a large block.
constexpr int32_t kSmallBlock = 64, kLargeBlock = 128;

/// Where a layer's queries, keys and values are, and where results go.
struct AttentionTensors {
  const f16* q;        ///< [rows, heads, padded_dim]
  const f16* keys;     ///< [kv_heads, slots, padded_dim]
  const f16* values;   ///< [kv_heads, slots, padded_dim]
  float* partial_out;  ///< [kv_heads, partial_rows × group, padded_dim]
  float* partial_lse;  ///< [kv_heads, partial_rows × group]
  bf16* out;           ///< [rows, heads × head_dim]
  Fp8Rows out8;        ///< instead of `out`, each head a block with its scale; only where rounds_to_fp8()
  const e4m3* q8 = nullptr;  ///< instead of `q`, and `narrow` instead of `keys` and `values`; only where
                             ///< hopper_attention()
  NarrowKeys narrow = {};
  const float* sinks = nullptr;  ///< [heads], logits of no key, in base 2; or null. Not under a score cap
};

/// out = softmax(q k) v over everything each row sees. `on_device` [1] is a copy of `inputs` there.
void attend(const AttentionInputs& inputs, const AttentionInputs* on_device, const HeadLayout& layout,
            const AttentionTensors& tensors, cudaStream_t stream);
/// attend() where there are sinks. Its kernels are apart, so that those without them stay as they are.
void attend_with_sinks(const AttentionInputs& inputs, const AttentionInputs* on_device,
                       const HeadLayout& layout, const AttentionTensors& tensors, cudaStream_t stream);

/// Makes the step's copies in a layer's keys and values, [kv_heads, slots, padded_dim].
void copy_keys(const AttentionInputs* on_device, const HeadLayout& layout, f16* keys, f16* values,
               cudaStream_t stream);

/// Takes the rows' rotations `rope` [rows, rotary_dim] to their slots, and those of copied slots.
void place_turns(const float* rope, const int32_t* slots, int32_t rows, const AttentionInputs* on_device,
                 const HeadLayout& layout, float* turns, cudaStream_t stream);
/// Rounds the keys and values that `slots` [rows] name, of `wide` [2, kv_heads, slots, padded_dim].
void round_keys(const int32_t* slots, int32_t rows, const HeadLayout& layout, const f16* wide,
                const NarrowKeys& out, cudaStream_t stream);
/// Rounds queries [rows, heads, padded_dim].
void round_queries(const f16* q, int32_t rows, const HeadLayout& layout, const float* scales, e4m3* out,
                   cudaStream_t stream);
/// As copy_keys() above.
void copy_keys(const AttentionInputs* on_device, const HeadLayout& layout, const NarrowKeys& keys,
               cudaStream_t stream);
/// All pages that the step's rows see, to fp16.
void expand_keys(const AttentionInputs* on_device, const HeadLayout& layout, const NarrowKeys& keys,
                 f16* wide, cudaStream_t stream);

/// Shared memory of its largest block; a device may have less.
int attention_shared_bytes(int32_t padded_dim);

/// Whether the kernels for Hopper are used, which can also multiply e4m3 (not in order). They take all that
/// changes from step to step from `on_device`, so that a graph of them can be replayed for any step that has
/// the same kinds of blocks.
bool hopper_attention(const HeadLayout& layout, int32_t page_size);
/// Whether attend() can write e4m3.
bool rounds_to_fp8(const HeadLayout& layout, int32_t page_size);
/// The blocks' part of attend() on Hopper; false where this device or layout is not for it.
bool attend_hopper(const AttentionInputs& inputs, const AttentionInputs* on_device, const HeadLayout& layout,
                   const AttentionTensors& tensors, cudaStream_t stream);

}  // namespace sheaf::cuda

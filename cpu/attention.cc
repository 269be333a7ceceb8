// Two passes over the keys of a block of rows: all scores and their softmax, then the weighted sum of the
// values.
//
// Work: 4 · head_dim FLOPs a (query head, key) pair. Bytes: a span's keys and values once for a block of up
// to 64 rows and the query heads that share a key/value head, 8 · head_dim bytes a key.
//
// Why two passes and not the running softmax of a flash kernel: its rescaling happens where spans and blocks
// end, so the bits would depend on how a row's keys are cut. Here every score is one sum over head_dim, every
// weight depends on the row's scores alone, and a value sum takes keys strictly in the row's order. The
// scores of a block stay in the second cache, so the second pass costs little.
#include "cpu/attention.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace sheaf {

/// One block of rows with one key/value head.
struct Attention::BlockRun {
  const Attention& owner;
  const AttentionPlan& plan;
  const AttentionPlan::Block& block;
  const KvPool& pool;
  int64_t layer;
  int64_t head;
  Scratch& scratch;
  int64_t group;
  int64_t score_stride;

  float* scores(int64_t row, int64_t g) const {
    return scratch.scores.data() + (row * group + g) * score_stride;
  }
  float* mixed(int64_t row, int64_t g) const {
    return scratch.mixed.data() + (row * group + g) * pool.value_stride();
  }
  const AttentionPlan::Look& look(const AttentionPlan::Part& part, int32_t i) const {
    return plan.looks[static_cast<size_t>(part.first_look + i)];
  }

  /// Looks of a part that see at least `keys` keys: they come first.
  int32_t looks_that_see(const AttentionPlan::Part& part, int32_t keys) const {
    const auto first = plan.looks.begin() + part.first_look;
    const auto end =
        std::partition_point(first, first + part.looks, [&](const auto& l) { return l.visible >= keys; });
    return static_cast<int32_t>(end - first);
  }

  /// Scores of looks [from, to) for the panels of keys [key, key + keys). What a row gets for keys it does
  /// not see is overwritten by its next span, or by the end of its softmax.
  void score(const AttentionPlan::Part& part, int32_t from, int32_t to, int32_t key, int32_t keys,
             int64_t place, const float* queries, int64_t query_stride) const {
    if (from >= to) return;
    const int64_t head_dim = owner.config_.head_dim;
    size_t count = 0;
    for (int32_t i = from; i < to; ++i) {
      const AttentionPlan::Look& l = look(part, i);
      const int64_t row = plan.rows[static_cast<size_t>(block.first_row + l.row_in_block)];
      for (int64_t g = 0; g < group; ++g, ++count) {
        scratch.a[count] = queries + row * query_stride + (head * group + g) * head_dim;
        scratch.c[count] = scores(l.row_in_block, g) + l.offset + key;
      }
    }
    owner.kernels_.multiply(scratch.a.data(), scratch.c.data(), static_cast<int64_t>(count),
                            pool.key_panel(layer, head, place), kPanel, head_dim * kPanel, head_dim,
                            round_up_to_panel(keys) / kPanel, false);
  }

  /// Adds the values of keys [key, key + keys) to looks [from, to), which see them all.
  void mix(const AttentionPlan::Part& part, int32_t from, int32_t to, int32_t key, int32_t keys,
           int64_t place) const {
    if (from >= to || keys <= 0) return;
    size_t count = 0;
    for (int32_t i = from; i < to; ++i) {
      const AttentionPlan::Look& l = look(part, i);
      for (int64_t g = 0; g < group; ++g, ++count) {
        scratch.a[count] = scores(l.row_in_block, g) + l.offset + key;
        scratch.c[count] = mixed(l.row_in_block, g);
      }
    }
    owner.kernels_.multiply(scratch.a.data(), scratch.c.data(), static_cast<int64_t>(count),
                            pool.value(layer, head, place), pool.value_stride(), kPanel, keys,
                            pool.value_stride() / kPanel, true);
  }

  void score_part(const AttentionPlan::Part& part, const float* queries, int64_t query_stride) const {
    for (int32_t r = 0; r < part.runs; ++r) {
      const AttentionPlan::Run& run = plan.runs[static_cast<size_t>(part.first_run + r)];
      const int32_t whole = looks_that_see(part, run.first_key + run.keys);
      score(part, 0, whole, run.first_key, run.keys, run.place, queries, query_stride);
      for (int32_t k = 0; k < run.keys; k += kPanel) {
        const int32_t some = looks_that_see(part, run.first_key + k + 1);
        if (some <= whole) break;
        score(part, whole, some, run.first_key + k, kPanel, run.place + k, queries, query_stride);
      }
    }
  }

  void mix_part(const AttentionPlan::Part& part) const {
    for (int32_t r = 0; r < part.runs; ++r) {
      const AttentionPlan::Run& run = plan.runs[static_cast<size_t>(part.first_run + r)];
      const int32_t whole = looks_that_see(part, run.first_key + run.keys);
      mix(part, 0, whole, run.first_key, run.keys, run.place);
      for (int32_t k = 0; k < run.keys; k += kPanel) {
        const int32_t key = run.first_key + k;
        const int32_t some = looks_that_see(part, key + 1);
        if (some <= whole) break;
        const int32_t keys = std::min<int32_t>(kPanel, run.keys - k);
        const int32_t all = std::max(whole, looks_that_see(part, key + keys));
        mix(part, whole, all, key, keys, run.place + k);
        for (int32_t i = all; i < some; ++i)
          mix(part, i, i + 1, key, look(part, i).visible - key, run.place + k);
      }
    }
  }
};

void Attention::run(const AttentionPlan& plan, const KvPool& pool, int64_t layer, const float* queries,
                    int64_t query_stride, float* out) {
  const int64_t group = config_.heads / config_.kv_heads;
  const int64_t head_dim = config_.head_dim;
  const auto blocks = static_cast<int64_t>(plan.blocks.size());
  threads_.run(blocks * config_.kv_heads, [&](int64_t task, int thread) {
    // Last blocks first: in a prompt they see most keys.
    const AttentionPlan::Block& block =
        plan.blocks[static_cast<size_t>(blocks - 1 - task / config_.kv_heads)];
    const int64_t head = task % config_.kv_heads;
    Scratch& scratch = scratch_[static_cast<size_t>(thread)];
    const int64_t score_stride = round_up_to_panel(block.most_keys) + kPanel;
    scratch.scores.reserve(block.rows * group * score_stride, "attention scores");
    scratch.mixed.reserve(block.rows * group * pool.value_stride(), "attention sums");
    scratch.a.resize(static_cast<size_t>(block.rows * group));
    scratch.c.resize(static_cast<size_t>(block.rows * group));
    scratch.sums.resize(static_cast<size_t>(block.rows * group));

    const BlockRun run{*this, plan, block, pool, layer, head, scratch, group, score_stride};
    const std::span parts =
        std::span(plan.parts)
            .subspan(static_cast<size_t>(block.first_part), static_cast<size_t>(block.parts));
    for (const AttentionPlan::Part& part : parts) run.score_part(part, queries, query_stride);
    std::fill_n(scratch.mixed.data(), block.rows * group * pool.value_stride(), 0.0f);
    for (int32_t row = 0; row < block.rows; ++row) {
      const int32_t keys =
          plan.keys[static_cast<size_t>(plan.rows[static_cast<size_t>(block.first_row + row)])];
      for (int64_t g = 0; g < group; ++g)
        scratch.sums[static_cast<size_t>(row * group + g)] = kernels_.softmax(run.scores(row, g), keys);
    }
    for (const AttentionPlan::Part& part : parts) run.mix_part(part);
    for (int32_t row = 0; row < block.rows; ++row) {
      float* to = out + plan.rows[static_cast<size_t>(block.first_row + row)] * config_.heads * head_dim;
      for (int64_t g = 0; g < group; ++g) {
        const float sum = scratch.sums[static_cast<size_t>(row * group + g)];
        const float scale = sum > 0 ? 1.0f / sum : 0.0f;
        const float* from = run.mixed(row, g);
        for (int64_t d = 0; d < head_dim; ++d) to[(head * group + g) * head_dim + d] = from[d] * scale;
      }
    }
  });
}

}  // namespace sheaf

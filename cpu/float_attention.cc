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
#include <algorithm>
#include <cstddef>
#include <vector>

#include "cpu/attention.h"

namespace sheaf {
namespace {

struct Scratch {
  FloatBuffer scores;  ///< [rows × group][keys rounded up + 16]
  FloatBuffer mixed;   ///< [rows × group][head_dim rounded up]
  std::vector<const float*> a;
  std::vector<float*> c;
  std::vector<float> sums;  ///< [rows × group], of a row's weights
};

/// One block of rows with one key/value head.
struct BlockRun : BlockView {
  const Kernels& kernels;
  int64_t head_dim;
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

  /// Scores of looks [from, to) for the panels of keys [key, key + keys). What a row gets for keys it does
  /// not see is overwritten by its next span, or by the end of its softmax.
  void score(const AttentionPlan::Part& part, int32_t from, int32_t to, int32_t key, int32_t keys,
             int64_t place, const float* queries, int64_t query_stride) const {
    size_t count = 0;
    for (int32_t i = from; i < to; ++i) {
      const AttentionPlan::Look& l = look(part, i);
      const int64_t row = row_of(l.row_in_block);
      for (int64_t g = 0; g < group; ++g, ++count) {
        scratch.a[count] = queries + row * query_stride + (head * group + g) * head_dim;
        scratch.c[count] = scores(l.row_in_block, g) + l.offset + key;
      }
    }
    kernels.multiply(scratch.a.data(), scratch.c.data(), static_cast<int64_t>(count),
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
    kernels.multiply(scratch.a.data(), scratch.c.data(), static_cast<int64_t>(count),
                     pool.value(layer, head, place), pool.value_stride(), kPanel, keys,
                     pool.value_stride() / kPanel, true);
  }

  void mix_part(const AttentionPlan::Part& part) const {
    for (int32_t r = 0; r < part.runs; ++r) {
      const AttentionPlan::Run& run = plan.runs[static_cast<size_t>(part.first_run + r)];
      const int32_t whole = looks_that_see(plan, part, run.first_key + run.keys);
      mix(part, 0, whole, run.first_key, run.keys, run.place);
      for (int32_t k = 0; k < run.keys; k += kPanel) {
        const int32_t key = run.first_key + k;
        const int32_t some = looks_that_see(plan, part, key + 1);
        if (some <= whole) break;
        const int32_t keys = std::min<int32_t>(kPanel, run.keys - k);
        const int32_t all = std::max(whole, looks_that_see(plan, part, key + keys));
        mix(part, whole, all, key, keys, run.place + k);
        for (int32_t i = all; i < some; ++i)
          mix(part, i, i + 1, key, look(part, i).visible - key, run.place + k);
      }
    }
  }
};

class FloatAttention final : public Attention {
 public:
  FloatAttention(const ModelConfig& config, const Kernels& kernels, ThreadPool& threads)
      : config_(config),
        kernels_(kernels),
        threads_(threads),
        scratch_(static_cast<size_t>(threads.size())) {}

  void allocate(int32_t pages, int32_t page_size) override {
    pool_ = {};  // not both at once
    pool_ = KvPool(config_, pages, page_size);
  }
  const KvPlaces& places() const override { return pool_; }
  void write(int64_t layer, int64_t head, int64_t place, const float* key, const float* value) override {
    pool_.write(layer, head, place, key, value);
  }
  void copy(int64_t layer, int64_t head, int64_t from, int64_t to) override {
    pool_.copy(layer, head, from, to);
  }
  void read(int64_t layer, int64_t head, int64_t place, float* key, float* value) const override {
    pool_.read(layer, head, place, key, value);
  }
  int64_t pair_bytes() const override { return pool_.pair_bytes(); }
  void read(int64_t layer, int64_t head, int64_t place, std::byte* to) const override {
    pool_.read(layer, head, place, to);
  }
  void write(int64_t layer, int64_t head, int64_t place, const std::byte* from) override {
    pool_.write(layer, head, place, from);
  }
  void run(const AttentionPlan& plan, int64_t layer, const float* queries, int64_t query_stride,
           float* out) override;

 private:
  const ModelConfig& config_;
  const Kernels& kernels_;
  ThreadPool& threads_;
  KvPool pool_;
  std::vector<Scratch> scratch_;
};

void FloatAttention::run(const AttentionPlan& plan, int64_t layer, const float* queries, int64_t query_stride,
                         float* out) {
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
    scratch.mixed.reserve(block.rows * group * pool_.value_stride(), "attention sums");
    scratch.a.resize(static_cast<size_t>(block.rows * group));
    scratch.c.resize(static_cast<size_t>(block.rows * group));
    scratch.sums.resize(static_cast<size_t>(block.rows * group));

    const BlockRun run{{plan, block}, kernels_, head_dim, pool_, layer, head, scratch, group, score_stride};
    for (const AttentionPlan::Part& part : run.parts())
      each_piece(plan, part, [&](int32_t from, int32_t to, int32_t key, int32_t keys, int64_t place) {
        run.score(part, from, to, key, keys, place, queries, query_stride);
      });
    std::fill_n(scratch.mixed.data(), block.rows * group * pool_.value_stride(), 0.0f);
    for (int32_t row = 0; row < block.rows; ++row)
      for (int64_t g = 0; g < group; ++g)
        scratch.sums[static_cast<size_t>(row * group + g)] =
            kernels_.softmax(run.scores(row, g), run.keys_of(row));
    for (const AttentionPlan::Part& part : run.parts()) run.mix_part(part);
    for (int32_t row = 0; row < block.rows; ++row) {
      float* to = out + run.row_of(row) * config_.heads * head_dim;
      for (int64_t g = 0; g < group; ++g) {
        const float sum = scratch.sums[static_cast<size_t>(row * group + g)];
        const float scale = sum > 0 ? 1.0f / sum : 0.0f;
        const float* from = run.mixed(row, g);
        for (int64_t d = 0; d < head_dim; ++d) to[(head * group + g) * head_dim + d] = from[d] * scale;
      }
    }
  });
}

}  // namespace

std::unique_ptr<Attention> make_float_attention(const ModelConfig& config, const Kernels& kernels,
                                                ThreadPool& threads) {
  return std::make_unique<FloatAttention>(config, kernels, threads);
}

}  // namespace sheaf

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

struct FloatScratch {
  FloatBuffer scores;  ///< [rows × group][keys rounded up + 16]
  FloatBuffer mixed;   ///< [rows × group][head_dim rounded up]
  std::vector<const float*> a;
  std::vector<float*> c;
  std::vector<float> sums;       ///< [rows × group], of a row's weights
  std::vector<float> panel;      ///< [group][16], scores of an edge
  std::vector<float> documents;  ///< of weigh_documents()
};

struct FloatRun : BlockRun {
  const Kernels& kernels;
  const FloatKvPool& pool;
  FloatScratch& scratch;

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
        scratch.a[count] = queries + row * query_stride + head_start(g);
        scratch.c[count] = scores(l.row_in_block, g) + l.offset + key;
      }
    }
    kernels.multiply(scratch.a.data(), scratch.c.data(), static_cast<int64_t>(count),
                     pool.key_panel(layer, head, place), kPanel, head_dim * kPanel, head_dim,
                     round_up_to_panel(keys) / kPanel, false);
  }

  /// The scores of an edge's panel come out beside the row's, which take those that it sees.
  void score_edge(const AttentionPlan::Edge& edge, const float* queries, int64_t query_stride) const {
    for (int64_t g = 0; g < group; ++g) {
      const auto i = static_cast<size_t>(g);
      scratch.a[i] = queries + row_of(edge.row_in_block) * query_stride + head_start(g);
      scratch.c[i] = scratch.panel.data() + g * kPanel;
    }
    kernels.multiply(scratch.a.data(), scratch.c.data(), group, pool.key_panel(layer, head, edge.place),
                     kPanel, head_dim * kPanel, head_dim, 1, false);
    for (int64_t g = 0; g < group; ++g)
      std::copy_n(scratch.panel.data() + g * kPanel + edge.hidden, edge.keys,
                  scores(edge.row_in_block, g) + edge.at);
  }

  void mix_edge(const AttentionPlan::Edge& edge) const {
    for (int64_t g = 0; g < group; ++g) {
      scratch.a[static_cast<size_t>(g)] = scores(edge.row_in_block, g) + edge.at;
      scratch.c[static_cast<size_t>(g)] = mixed(edge.row_in_block, g);
    }
    kernels.multiply(scratch.a.data(), scratch.c.data(), group,
                     pool.value(layer, head, edge.place + edge.hidden), pool.value_stride(), kPanel,
                     edge.keys, pool.value_stride() / kPanel, true);
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
    for (const AttentionPlan::Edge& edge : edges(part)) mix_edge(edge);
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
      : Attention(config, threads), kernels_(kernels), scratch_(static_cast<size_t>(threads.size())) {}

  void allocate(int32_t pages, int32_t page_size) override {
    pool_ = {};  // not both at once
    pool_ = FloatKvPool(config_, pages, page_size);
  }
  KvPool& pool() override { return pool_; }

 private:
  void run_block(const BlockRun& at, int thread, const float* queries, int64_t query_stride,
                 float* out) override {
    FloatScratch& scratch = scratch_[static_cast<size_t>(thread)];
    const auto count = static_cast<size_t>(at.heads());
    scratch.scores.reserve(at.heads() * at.score_stride, "attention scores");
    scratch.mixed.reserve(at.heads() * pool_.value_stride(), "attention sums");
    scratch.panel.resize(static_cast<size_t>(at.group * kPanel));
    scratch.a.resize(count);
    scratch.c.resize(count);
    scratch.sums.resize(count);

    const FloatRun run{at, kernels_, pool_, scratch};
    for (const AttentionPlan::Part& part : run.parts()) {
      for (const AttentionPlan::Edge& edge : run.edges(part)) run.score_edge(edge, queries, query_stride);
      each_piece(run.plan, part, [&](int32_t from, int32_t to, int32_t key, int32_t keys, int64_t place) {
        run.score(part, from, to, key, keys, place, queries, query_stride);
      });
    }
    std::fill_n(scratch.mixed.data(), run.heads() * pool_.value_stride(), 0.0f);
    for (int32_t row = 0; row < run.block.rows; ++row)
      for (int64_t g = 0; g < run.group; ++g) {
        if (config_.score_cap > 0) kernels_.soft_cap(run.scores(row, g), run.keys_of(row), config_.score_cap);
        if (!run.plan.document_softmax.plain())
          weigh_documents(run, row, kernels_, scratch.documents, run.scores(row, g));
        int32_t scores = run.keys_of(row);
        // A sink is one more score, whose weight nothing is multiplied by.
        if (run.sinks != nullptr) run.scores(row, g)[scores++] = run.sinks[g];
        scratch.sums[static_cast<size_t>(row * run.group + g)] = kernels_.softmax(run.scores(row, g), scores);
      }
    for (const AttentionPlan::Part& part : run.parts()) run.mix_part(part);
    for (int32_t row = 0; row < run.block.rows; ++row) {
      float* to = out + run.row_of(row) * config_.heads * run.head_dim;
      for (int64_t g = 0; g < run.group; ++g) {
        const float sum = scratch.sums[static_cast<size_t>(row * run.group + g)];
        const float scale = sum > 0 ? 1.0f / sum : 0.0f;
        const float* from = run.mixed(row, g);
        for (int64_t d = 0; d < run.head_dim; ++d) to[run.head_start(g) + d] = from[d] * scale;
      }
    }
  }

  const Kernels& kernels_;
  FloatKvPool pool_;
  std::vector<FloatScratch> scratch_;
};

}  // namespace

std::unique_ptr<Attention> make_float_attention(const ModelConfig& config, const Kernels& kernels,
                                                ThreadPool& threads) {
  return std::make_unique<FloatAttention>(config, kernels, threads);
}

}  // namespace sheaf

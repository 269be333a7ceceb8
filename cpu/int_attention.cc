// As float_attention.cc, with both products in whole numbers of 16 bits. A score is an exact sum over
// head_dim. The weights of a row become whole numbers, the scales of the values multiplied in before (as
// logarithms, to the scores). So the sum of the values is exact too, and does not depend on how a row's keys
// are cut.
//
// Work: three products of bytes for each of fp32, 2 · head_dim multiply-adds a (query head, key) pair. Bytes:
// half of fp32's.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "cpu/attention.h"
#include "cpu/int_kv_pool.h"

namespace sheaf {
namespace {

constexpr int kPlanes = IntKvPool::kPlanes;
constexpr int64_t kChunk = IntKvPool::kChunk;
// Keys whose products fit 32 bits: 2 · 127 · 128 a key.
constexpr int64_t kMostKeysIn32Bits = 65536;

struct IntScratch {
  FloatBuffer scores;                             ///< [rows × group][keys rounded up + 16]
  LargeBuffer<int8_t> weights;                    ///< [rows × group][planes][the same]
  std::vector<float> log_scales, inverse_scales;  ///< of all values that a row sees, in its order
  LargeBuffer<int8_t> queries;                    ///< [rows × group][chunks][planes][16]
  LargeBuffer<int8_t> gathered;                   ///< rows of a part or a call, in groups
  LargeBuffer<int32_t> sums;                      ///< [rows × group][head_dim / 16][planes][16]
  LargeBuffer<int64_t> wide_sums;                 ///< the same, where there are very many keys
  std::vector<float> query_scales, gathered_scales;
  std::vector<float> weight_scales;  ///< [rows × group]: 1 / (sum of weights · the largest)
  std::vector<float*> c;
  std::vector<int32_t*> sum_rows;
  std::vector<float> panel;      ///< [group][16], scores of an edge
  std::vector<float> documents;  ///< of weigh_documents()
};

struct IntRun : BlockRun {
  const IntKernels& kernels;
  const IntKvPool& pool;
  IntScratch& scratch;

  int64_t query_bytes() const { return kernels.rows.alone().bytes(head_dim, kPlanes); }
  int64_t sum_count() const { return pool.value_panels() * kPlanes * kPanel; }
  float* scores(int64_t row, int64_t g) const {
    return scratch.scores.data() + (row * group + g) * score_stride;
  }
  void make_room() const {
    const auto count = static_cast<size_t>(heads());
    scratch.scores.reserve(heads() * score_stride, "attention scores");
    scratch.queries.reserve(heads() * query_bytes(), "attention queries");
    const int64_t longest =
        std::max<int64_t>(kernels.panels.chunks(head_dim), AttentionPlan::kLongestRun / kChunk);
    scratch.gathered.reserve((heads() + kernels.rows.together) * longest * kChunk * kPlanes,
                             "attention rows");
    scratch.sums.reserve(heads() * sum_count(), "attention sums");
    for (auto* numbers : {&scratch.query_scales, &scratch.gathered_scales, &scratch.weight_scales})
      numbers->resize(count);
    scratch.c.resize(count);
    scratch.weights.reserve(heads() * kPlanes * score_stride, "attention weights");
    for (auto* scales : {&scratch.log_scales, &scratch.inverse_scales})
      scales->resize(static_cast<size_t>(score_stride));
    scratch.sum_rows.resize(count);
    scratch.panel.resize(static_cast<size_t>(group * kPanel));
  }

  void round_queries(const float* queries, int64_t query_stride) const {
    for (int32_t row = 0; row < block.rows; ++row)
      for (int64_t g = 0; g < group; ++g) {
        const int64_t i = row * group + g;
        scratch.query_scales[static_cast<size_t>(i)] =
            quantize(queries + row_of(row) * query_stride + head_start(g), head_dim, kPlanes,
                     kernels.rows.alone(), 0, scratch.queries.data() + i * query_bytes());
      }
  }

  /// Where the bytes of row `index` of a call go; its pieces of `step` bytes lie rows.together · step apart.
  int8_t* gathered(int64_t index, int64_t row_bytes) const {
    const int64_t together = kernels.rows.together;
    return scratch.gathered.data() + index / together * together * row_bytes +
           index % together * kernels.rows.step;
  }
  /// `layout` is a copy, which no written byte can change.
  static void put_pieces(IntLayout layout, const int8_t* from, int64_t bytes, int8_t* to) {
    const int64_t apart = layout.together * layout.step;
    if (apart == layout.step)
      std::memcpy(to, from, static_cast<size_t>(bytes));
    else if (layout.step == 8)
      for (int64_t i = 0; i < bytes; i += 8, to += apart) std::memcpy(to, from + i, 8);
    else
      for (int64_t i = 0; i < bytes; i += 4, to += apart) std::memcpy(to, from + i, 4);
  }

  /// Puts the queries of a part's looks together, in their order.
  void gather_queries(const AttentionPlan::Part& part) const {
    int64_t count = 0;
    for (int32_t i = 0; i < part.looks; ++i)
      for (int64_t g = 0; g < group; ++g, ++count) {
        const int64_t query = look(part, i).row_in_block * group + g;
        put_pieces(kernels.rows, scratch.queries.data() + query * query_bytes(), query_bytes(),
                   gathered(count, query_bytes()));
        scratch.gathered_scales[static_cast<size_t>(count)] =
            scratch.query_scales[static_cast<size_t>(query)];
      }
  }

  /// Scores of looks [from, to) for the panels of keys [key, key + keys). What a row gets for keys it does
  /// not see is overwritten by its next span, or by the end of its softmax.
  void score(const AttentionPlan::Part& part, int32_t from, int32_t to, int32_t key, int32_t keys,
             int64_t place) const {
    // From the beginning of a group: the look before has these scores already and gets them again.
    const int64_t first = from * group / kernels.rows.together * kernels.rows.together;
    const int64_t count = to * group - first;
    auto i = static_cast<int32_t>(first / group);
    for (int64_t g = first % group, at = 0; at < count; ++i, g = 0) {
      const AttentionPlan::Look& l = look(part, i);
      for (; g < group; ++g, ++at)
        scratch.c[static_cast<size_t>(at)] = scores(l.row_in_block, g) + l.offset + key;
    }
    kernels.multiply({.a = scratch.gathered.data() + first * query_bytes(),
                      .rows = count,
                      .b = pool.keys(layer, head, place),
                      .panels = round_up_to_panel(keys) / kPanel,
                      .panel_stride = pool.key_panel_bytes(),
                      .chunk_stride = kernels.panels.chunk_bytes(kPlanes),
                      .chunks = kernels.panels.chunks(head_dim),
                      .planes = kPlanes},
                     scratch.gathered_scales.data() + first, pool.key_scales(layer, head, place),
                     scratch.c.data());
  }

  /// The scores of an edge's panel come out beside the row's, which take those that it sees.
  void score_edge(const AttentionPlan::Edge& edge) const {
    for (int64_t g = 0; g < group; ++g) {
      const int64_t query = edge.row_in_block * group + g;
      put_pieces(kernels.rows, scratch.queries.data() + query * query_bytes(), query_bytes(),
                 gathered(g, query_bytes()));
      scratch.gathered_scales[static_cast<size_t>(g)] = scratch.query_scales[static_cast<size_t>(query)];
      scratch.c[static_cast<size_t>(g)] = scratch.panel.data() + g * kPanel;
    }
    kernels.multiply({.a = scratch.gathered.data(),
                      .rows = group,
                      .b = pool.keys(layer, head, edge.place),
                      .panels = 1,
                      .panel_stride = pool.key_panel_bytes(),
                      .chunk_stride = kernels.panels.chunk_bytes(kPlanes),
                      .chunks = kernels.panels.chunks(head_dim),
                      .planes = kPlanes},
                     scratch.gathered_scales.data(), pool.key_scales(layer, head, edge.place),
                     scratch.c.data());
    for (int64_t g = 0; g < group; ++g)
      std::copy_n(scratch.panel.data() + g * kPanel + edge.hidden, edge.keys,
                  scores(edge.row_in_block, g) + edge.at);
  }

  int8_t* weights(int64_t row, int64_t g, int plane) const {
    return scratch.weights.data() + ((row * group + g) * kPlanes + plane) * score_stride;
  }

  /// The row before sees the same spans, but perhaps not as much of the last.
  bool sees_as_before(int32_t row) const {
    return row > 0 && std::ranges::equal(spans_of(row), spans_of(row - 1), [](const auto& a, const auto& b) {
             return a.first_run == b.first_run && a.first == b.first && a.offset == b.offset;
           });
  }

  /// The scales of all values that a row sees, in the row's order; the first `kept` are there already.
  void gather_value_scales(int32_t row, int32_t kept) const {
    for (const AttentionPlan::RowSpan& seen : spans_of(row))
      for (int32_t r = 0; r < seen.runs; ++r) {
        const AttentionPlan::Run& run = plan.runs[static_cast<size_t>(seen.first_run + r)];
        const int32_t first = std::max({kept - seen.offset - run.first_key, seen.first - run.first_key, 0});
        const int32_t keys = std::min(run.keys, seen.visible - run.first_key) - first;
        if (keys <= 0) continue;
        const auto to = static_cast<size_t>(seen.offset + run.first_key + first);
        std::copy_n(pool.log_scales(layer, head, run.place) + first, keys, scratch.log_scales.data() + to);
        std::copy_n(pool.inverse_scales(layer, head, run.place) + first, keys,
                    scratch.inverse_scales.data() + to);
      }
    for (auto* scales : {&scratch.log_scales, &scratch.inverse_scales})
      std::fill_n(scales->data() + keys_of(row), kPanel, 0.0f);
  }

  void weigh_rows(const Kernels& float_kernels, float score_cap) const {
    for (int32_t row = 0; row < block.rows; ++row) {
      gather_value_scales(row, sees_as_before(row) ? keys_of(row - 1) : 0);
      for (int64_t g = 0; g < group; ++g) {
        if (score_cap > 0) float_kernels.soft_cap(scores(row, g), keys_of(row), score_cap);
        if (!plan.document_softmax.plain())
          weigh_documents(*this, row, float_kernels, scratch.documents, scores(row, g));
        const float sum =
            float_kernels.weigh(scores(row, g), scratch.log_scales.data(), scratch.inverse_scales.data(),
                                keys_of(row), kernels.rows.flip, weights(row, g, 0), weights(row, g, 1),
                                sinks == nullptr ? -INFINITY : sinks[g]);
        scratch.weight_scales[static_cast<size_t>(row * group + g)] =
            keys_of(row) > 0 ? 1 / (sum * Kernels::kMostWeight) : 0.0f;
      }
    }
  }

  /// Adds the values of keys [key, key + keys), as far as they see them, to looks [from, to).
  void mix(const AttentionPlan::Part& part, int32_t from, int32_t to, int32_t key, int32_t keys,
           int64_t place) const {
    const IntLayout layout = kernels.rows;
    const int64_t chunks = kernels.panels.chunks(keys);
    const int64_t row_bytes = chunks * kChunk * kPlanes;
    int64_t count = 0;
    for (int32_t i = from; i < to; ++i) {
      const AttentionPlan::Look& l = look(part, i);
      const int64_t seen = std::min<int64_t>(keys, l.visible - key);
      for (int64_t g = 0; g < group; ++g, ++count)
        for (int plane = 0; plane < kPlanes; ++plane) {
          const int8_t* from_weights = weights(l.row_in_block, g, plane) + l.offset + key;
          int8_t* pieces = gathered(count, row_bytes) + plane * kChunk * layout.together;
          const int64_t apart = kPlanes * kChunk * layout.together;
          int64_t first = 0;
          for (; first + kChunk <= seen; first += kChunk, pieces += apart)
            put_pieces(layout, from_weights + first, kChunk, pieces);
          if (first < seen) {  // what follows is of the row's next span
            int8_t some[kChunk];
            std::fill_n(some, kChunk, static_cast<int8_t>(layout.flip));
            std::copy_n(from_weights + first, seen - first, some);
            put_pieces(layout, some, kChunk, pieces);
          }
        }
      for (int64_t g = 0; g < group; ++g)
        scratch.sum_rows[static_cast<size_t>(count - group + g)] =
            scratch.sums.data() + (l.row_in_block * group + g) * sum_count();
    }
    kernels.add({.a = scratch.gathered.data(),
                 .rows = count,
                 .b = pool.values(layer, head, place),
                 .panels = pool.value_panels(),
                 .panel_stride = IntKvPool::value_panel_bytes(),
                 .chunk_stride = pool.value_chunk_bytes(),
                 .chunks = chunks,
                 .planes = kPlanes},
                scratch.sum_rows.data());
  }

  void mix_edge(const AttentionPlan::Edge& edge) const {
    const IntLayout layout = kernels.rows;
    for (int64_t g = 0; g < group; ++g) {
      for (int plane = 0; plane < kPlanes; ++plane) {
        int8_t seen[kChunk];
        std::fill_n(seen, kChunk, static_cast<int8_t>(layout.flip));
        std::copy_n(weights(edge.row_in_block, g, plane) + edge.at, edge.keys, seen + edge.hidden);
        put_pieces(layout, seen, kChunk, gathered(g, kChunk * kPlanes) + plane * kChunk * layout.together);
      }
      scratch.sum_rows[static_cast<size_t>(g)] =
          scratch.sums.data() + (edge.row_in_block * group + g) * sum_count();
    }
    kernels.add({.a = scratch.gathered.data(),
                 .rows = group,
                 .b = pool.values(layer, head, edge.place),
                 .panels = pool.value_panels(),
                 .panel_stride = IntKvPool::value_panel_bytes(),
                 .chunk_stride = pool.value_chunk_bytes(),
                 .chunks = 1,
                 .planes = kPlanes},
                scratch.sum_rows.data());
  }

  bool wide() const { return block.most_keys > kMostKeysIn32Bits; }

  void clear_sums() const {
    std::fill_n(scratch.sums.data(), heads() * sum_count(), 0);
    if (!wide()) return;
    scratch.wide_sums.reserve(heads() * sum_count(), "attention sums");
    std::fill_n(scratch.wide_sums.data(), heads() * sum_count(), 0);
  }
  void widen_sums() const {
    for (int64_t i = 0; i < heads() * sum_count(); ++i) scratch.wide_sums.data()[i] += scratch.sums.data()[i];
    std::fill_n(scratch.sums.data(), heads() * sum_count(), 0);
  }

  void put_row(int64_t index, float* out) const {
    const auto put = [&](const auto* sums) {
      const float scale = 256.0f * scratch.weight_scales[static_cast<size_t>(index)];
      for (int64_t first = 0; first < head_dim; first += kPanel) {
        const auto* high = sums + index * sum_count() + first * kPlanes;
        const auto* low = high + kPanel;
        const int64_t count = std::min(kPanel, head_dim - first);
        for (int64_t d = 0; d < count; ++d)
          out[first + d] = (static_cast<float>(high[d]) * 256.0f + static_cast<float>(low[d])) * scale;
      }
    };
    if (wide())
      put(scratch.wide_sums.data());
    else
      put(scratch.sums.data());
  }
};

class IntAttention final : public Attention {
 public:
  IntAttention(const ModelConfig& config, const Kernels& kernels, const IntKernels& int_kernels,
               ThreadPool& threads)
      : Attention(config, threads),
        kernels_(kernels),
        int_kernels_(int_kernels),
        scratch_(static_cast<size_t>(threads.size())) {}

  void allocate(int32_t pages, int32_t page_size) override {
    pool_ = {};  // not both at once
    pool_ = IntKvPool(config_, int_kernels_, pages, page_size);
  }
  KvPool& pool() override { return pool_; }

 private:
  void run_block(const BlockRun& at, int thread, const float* queries, int64_t query_stride,
                 float* out) override {
    const IntRun run{at, int_kernels_, pool_, scratch_[static_cast<size_t>(thread)]};
    run.make_room();
    run.round_queries(queries, query_stride);
    for (const AttentionPlan::Part& part : run.parts()) {
      for (const AttentionPlan::Edge& edge : run.edges(part)) run.score_edge(edge);
      run.gather_queries(part);
      each_piece(run.plan, part, [&](int32_t from, int32_t to, int32_t key, int32_t keys, int64_t place) {
        run.score(part, from, to, key, keys, place);
      });
    }
    run.weigh_rows(kernels_, config_.score_cap);
    run.clear_sums();
    for (const AttentionPlan::Part& part : run.parts()) {
      for (const AttentionPlan::Edge& edge : run.edges(part)) run.mix_edge(edge);
      each_piece(run.plan, part, [&](int32_t from, int32_t to, int32_t key, int32_t keys, int64_t place) {
        run.mix(part, from, to, key, keys, place);
        if (run.wide()) run.widen_sums();
      });
    }
    for (int32_t row = 0; row < run.block.rows; ++row)
      for (int64_t g = 0; g < run.group; ++g)
        run.put_row(row * run.group + g,
                    out + run.row_of(row) * config_.heads * run.head_dim + run.head_start(g));
  }

  const Kernels& kernels_;
  const IntKernels& int_kernels_;
  IntKvPool pool_;
  std::vector<IntScratch> scratch_;
};

}  // namespace

std::unique_ptr<Attention> make_int_attention(const ModelConfig& config, const Kernels& kernels,
                                              const IntKernels& int_kernels, ThreadPool& threads) {
  return std::make_unique<IntAttention>(config, kernels, int_kernels, threads);
}

}  // namespace sheaf

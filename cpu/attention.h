#pragma once
#include <memory>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/model/config.h"
#include "cpu/attention_plan.h"
#include "cpu/kernels/int_kernels.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kv_pool.h"

namespace sheaf {

/// Rotates the first `size` values of a head. angles: `size` / 2 cosines, then as many sines.
inline void rotate(const float* angles, int32_t size, float* head) {
  const int32_t half = size / 2;
  for (int32_t i = 0; i < half; ++i) {
    const float first = head[i];
    const float second = head[i + half];
    head[i] = first * angles[i] - second * angles[half + i];
    head[i + half] = second * angles[i] + first * angles[half + i];
  }
}

/// One block of rows with one key/value head of a layer.
struct BlockRun {
  const AttentionPlan& plan;
  const AttentionPlan::Block& block;
  int64_t layer, head;
  int64_t group;  ///< query heads that share the key/value head
  int64_t head_dim;
  const float* sinks;    ///< [group], a logit of no key for each query head; null: none
  int64_t score_stride;  ///< scores of a row of one query head, with room to fill up panels

  int64_t heads() const { return block.rows * group; }
  std::span<const AttentionPlan::Part> parts() const {
    return std::span(plan.parts)
        .subspan(static_cast<size_t>(block.first_part), static_cast<size_t>(block.parts));
  }
  const AttentionPlan::Look& look(const AttentionPlan::Part& part, int32_t i) const {
    return plan.looks[static_cast<size_t>(part.first_look + i)];
  }
  std::span<const AttentionPlan::Edge> edges(const AttentionPlan::Part& part) const {
    return std::span(plan.edges)
        .subspan(static_cast<size_t>(part.first_edge), static_cast<size_t>(part.edges));
  }
  int64_t row_of(int32_t row_in_block) const {
    return plan.rows[static_cast<size_t>(block.first_row + row_in_block)];
  }
  int32_t keys_of(int32_t row_in_block) const { return plan.keys[static_cast<size_t>(row_of(row_in_block))]; }
  std::span<const AttentionPlan::RowSpan> spans_of(int32_t row_in_block) const {
    const int32_t* first = plan.first_span.data() + row_of(row_in_block);
    return std::span(plan.row_spans)
        .subspan(static_cast<size_t>(first[0]), static_cast<size_t>(first[1] - first[0]));
  }
  /// Where the numbers of a row's query head begin among those of all its heads.
  int64_t head_start(int64_t g) const { return (head * group + g) * head_dim; }
};

/// Changes a row's scores for one head, so that an ordinary softmax of them is the one that the plan's
/// document_softmax asks for. `room` is scratch.
void weigh_documents(const BlockRun& run, int32_t row_in_block, const Kernels& kernels,
                     std::vector<float>& room, float* scores);

/// The keys and values of all layers, and attention over them.
class Attention {
 public:
  Attention(const ModelConfig& config, ThreadPool& threads) : config_(config), threads_(threads) {}
  virtual ~Attention() = default;

  /// Makes the pool. May be called again.
  virtual void allocate(int32_t pages, int32_t page_size) = 0;
  virtual KvPool& pool() = 0;

  /// Attention of one layer over spans. The queries are rotated and scaled; zeros come out where a row sees
  /// no key. queries: [rows, query_stride], the heads first; `sinks`: [heads], logits of no key, or empty;
  /// out: [rows, heads × head_dim].
  void run(const AttentionPlan& plan, int64_t layer, const float* queries, int64_t query_stride,
           std::span<const float> sinks, float* out) {
    const auto blocks = static_cast<int64_t>(plan.blocks.size());
    threads_.run(blocks * config_.kv_heads, [&](int64_t task, int thread) {
      // Last blocks first: in a prompt they see most keys.
      const AttentionPlan::Block& block =
          plan.blocks[static_cast<size_t>(blocks - 1 - task / config_.kv_heads)];
      const int64_t head = task % config_.kv_heads, group = config_.heads / config_.kv_heads;
      run_block({plan, block, layer, head, group, config_.head_dim,
                 sinks.empty() ? nullptr : sinks.data() + head * group,
                 round_up_to_panel(block.most_keys) + kPanel},
                thread, queries, query_stride, out);
    });
  }

 protected:
  /// May be called on several threads at once.
  virtual void run_block(const BlockRun& run, int thread, const float* queries, int64_t query_stride,
                         float* out) = 0;

  const ModelConfig& config_;
  ThreadPool& threads_;
};

/// Everything in fp32.
std::unique_ptr<Attention> make_float_attention(const ModelConfig& config, const Kernels& kernels,
                                                ThreadPool& threads);
/// Products in whole numbers of 16 bits, the softmax in fp32.
std::unique_ptr<Attention> make_int_attention(const ModelConfig& config, const Kernels& kernels,
                                              const IntKernels& int_kernels, ThreadPool& threads);

}  // namespace sheaf

#pragma once
#include <vector>

#include "core/base/thread_pool.h"
#include "core/model/config.h"
#include "cpu/attention_plan.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kv_pool.h"
#include "cpu/large_buffer.h"

namespace sheaf {

/// Attention of one layer over spans. The queries are rotated and scaled; zeros come out where a row sees no
/// key.
class Attention {
 public:
  Attention(const ModelConfig& config, const Kernels& kernels, ThreadPool& threads)
      : config_(config),
        kernels_(kernels),
        threads_(threads),
        scratch_(static_cast<size_t>(threads.size())) {}

  /// queries: [rows, query_stride], the heads first; out: [rows, heads × head_dim].
  void run(const AttentionPlan& plan, const KvPool& pool, int64_t layer, const float* queries,
           int64_t query_stride, float* out);

 private:
  struct Scratch {
    FloatBuffer scores;  ///< [rows × group][keys rounded up + 16]
    FloatBuffer mixed;   ///< [rows × group][head_dim rounded up]
    std::vector<const float*> a;
    std::vector<float*> c;
    std::vector<float> sums;  ///< [rows × group], of a row's weights
  };
  struct BlockRun;

  const ModelConfig& config_;
  const Kernels& kernels_;
  ThreadPool& threads_;
  std::vector<Scratch> scratch_;
};

}  // namespace sheaf

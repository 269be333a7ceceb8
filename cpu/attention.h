#pragma once
#include <cstddef>
#include <memory>

#include "core/base/thread_pool.h"
#include "core/model/config.h"
#include "cpu/attention_plan.h"
#include "cpu/kernels/int_kernels.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kv_pool.h"

namespace sheaf {

/// The keys and values of all layers, and attention over them.
class Attention {
 public:
  virtual ~Attention() = default;

  /// Makes the pool. May be called again.
  virtual void allocate(int32_t pages, int32_t page_size) = 0;
  virtual const KvPlaces& places() const = 0;
  /// Stores head_dim floats each; may be called for different places at once.
  virtual void write(int64_t layer, int64_t head, int64_t place, const float* key, const float* value) = 0;
  virtual void copy(int64_t layer, int64_t head, int64_t from, int64_t to) = 0;  ///< places
  /// Gives them back, as exactly as they are held.
  virtual void read(int64_t layer, int64_t head, int64_t place, float* key, float* value) const = 0;
  /// A key and its value as bytes, and back; likewise.
  virtual int64_t pair_bytes() const = 0;
  virtual void read(int64_t layer, int64_t head, int64_t place, std::byte* to) const = 0;
  virtual void write(int64_t layer, int64_t head, int64_t place, const std::byte* from) = 0;

  /// Attention of one layer over spans. The queries are rotated and scaled; zeros come out where a row sees
  /// no key. queries: [rows, query_stride], the heads first; out: [rows, heads × head_dim].
  virtual void run(const AttentionPlan& plan, int64_t layer, const float* queries, int64_t query_stride,
                   float* out) = 0;
};

/// Everything in fp32.
std::unique_ptr<Attention> make_float_attention(const ModelConfig& config, const Kernels& kernels,
                                                ThreadPool& threads);
/// Products in whole numbers of 16 bits, the softmax in fp32.
std::unique_ptr<Attention> make_int_attention(const ModelConfig& config, const Kernels& kernels,
                                              const IntKernels& int_kernels, ThreadPool& threads);

}  // namespace sheaf

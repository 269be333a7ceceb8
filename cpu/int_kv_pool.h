#pragma once
#include <cstdint>

#include "core/model/config.h"
#include "cpu/kernels/int_kernels.h"
#include "cpu/kv_pool.h"
#include "cpu/large_buffer.h"

namespace sheaf {

/// The keys and values of all layers as whole numbers of two planes, with a scale for each vector. Both lie
/// as the kernels take them: 16 keys are a panel of the product that gives scores, and 16 values a chunk of
/// the one that sums them up, [head_dim / 16] panels side by side.
class IntKvPool : public KvPlaces {
 public:
  static constexpr int kPlanes = 2;
  static constexpr int64_t kChunk = 16;  ///< of the kernels: values lie in pages of 16

  IntKvPool() = default;
  IntKvPool(const ModelConfig& config, const IntKernels& kernels, int32_t pages, int32_t page_size);

  int64_t key_panel_bytes() const { return layout_.bytes(head_dim_, kPlanes); }
  int64_t value_panels() const { return round_up_to_panel(head_dim_) / kPanel; }
  static constexpr int64_t value_panel_bytes() { return kChunk * kPlanes * kPanel; }
  int64_t value_chunk_bytes() const { return value_panels() * value_panel_bytes(); }

  /// The panel or chunk that starts at `place`, a multiple of 16.
  const int8_t* keys(int64_t layer, int64_t head, int64_t place) const {
    return keys_.data() + index(layer, head, place) / kPanel * key_panel_bytes();
  }
  const int8_t* values(int64_t layer, int64_t head, int64_t place) const {
    return values_.data() + index(layer, head, place) / kPanel * value_chunk_bytes();
  }
  const float* key_scales(int64_t layer, int64_t head, int64_t place) const {
    return key_scales_.data() + index(layer, head, place);
  }
  /// Of a value's scale the logarithm and the inverse, as attention takes them.
  const float* log_scales(int64_t layer, int64_t head, int64_t place) const {
    return log_scales_.data() + index(layer, head, place);
  }
  const float* inverse_scales(int64_t layer, int64_t head, int64_t place) const {
    return inverse_scales_.data() + index(layer, head, place);
  }
  /// Stores head_dim floats each.
  void write(int64_t layer, int64_t head, int64_t place, const float* key, const float* value);
  void copy(int64_t layer, int64_t head, int64_t from, int64_t to);

 private:
  int64_t head_dim_ = 0;
  IntLayout layout_{};
  LargeBuffer<int8_t> keys_;
  LargeBuffer<int8_t> values_;
  FloatBuffer key_scales_;
  FloatBuffer log_scales_;
  FloatBuffer inverse_scales_;
};

}  // namespace sheaf

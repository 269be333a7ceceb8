#pragma once
#include <cstddef>
#include <cstdint>

#include "core/model/config.h"
#include "cpu/kernels/int_kernels.h"
#include "cpu/kv_pool.h"
#include "cpu/large_buffer.h"

namespace sheaf {

/// The keys and values of all layers as whole numbers of two planes, with a scale for each vector. Both lie
/// as the kernels take them: 16 keys are a panel of the product that gives scores, and 16 values a chunk of
/// the one that sums them up, [head_dim / 16] panels side by side.
class IntKvPool final : public KvPool {
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
  void write(int64_t layer, int64_t head, int64_t place, const float* key, const float* value) override;
  void read(int64_t layer, int64_t head, int64_t place, float* key, float* value) const override;
  int64_t pair_bytes() const override {
    return (key_panel_bytes() + value_chunk_bytes()) / kPanel + int64_t{3 * sizeof(float)};
  }
  void read(int64_t layer, int64_t head, int64_t place, std::byte* to) const override;
  void write(int64_t layer, int64_t head, int64_t place, const std::byte* from) override;

 private:
  /// Where the bytes of a key and a value begin; those of a key come in pieces of `step` bytes, those of a
  /// value alone.
  int64_t key_start(int64_t at) const { return at / kPanel * key_panel_bytes() + at % kPanel * layout_.step; }
  int64_t value_start(int64_t at) const {
    const int64_t in_panel = at % kPanel, step = layout_.step;
    return at / kPanel * value_chunk_bytes() + in_panel / step * kPanel * step + in_panel % step;
  }
  /// Calls with each place of a value's bytes, counted from its start, in order.
  template <class Visit>
  void each_value_byte(Visit&& visit) const {
    for (int64_t part = 0; part < value_panels() * kPlanes; ++part)
      for (int64_t d = 0; d < kChunk; ++d) visit(part * kChunk * kPanel + d * layout_.step);
  }

  template <class Visit>
  void each_run(int64_t at, Visit&& visit) const;

  int64_t head_dim_ = 0;
  IntLayout layout_{};
  LargeBuffer<int8_t> keys_;
  LargeBuffer<int8_t> values_;
  FloatBuffer key_scales_;
  FloatBuffer log_scales_;
  FloatBuffer inverse_scales_;
};

}  // namespace sheaf

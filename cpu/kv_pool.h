#pragma once
#include <cstdint>

#include "core/model/config.h"
#include "cpu/kernels/kernels.h"
#include "cpu/large_buffer.h"

namespace sheaf {

/// Where keys and values lie. A page takes a multiple of 16 places, so pages of 16, 32 … tokens waste
/// nothing.
class KvPlaces {
 public:
  KvPlaces() = default;
  KvPlaces(int32_t pages, int32_t page_size);

  int32_t pages() const { return pages_; }
  int32_t page_size() const { return page_size_; }
  int64_t places() const { return pages_ * page_places_; }

  /// The place of key `offset` of a page.
  int64_t place(int64_t page, int64_t offset) const { return page * page_places_ + offset; }
  int64_t place_of_slot(int64_t slot) const { return place(slot / page_size_, slot % page_size_); }

 private:
  int32_t pages_ = 0;
  int32_t page_size_ = 0;
  int64_t page_places_ = 0;
};

/// The keys and values of all layers in fp32. Keys lie as panels of 16 slots, [slots / 16][head_dim][16], so
/// that a row's scores are the same product as a linear layer; values lie slot by slot, [slots][head_dim
/// rounded up to 16].
class KvPool : public KvPlaces {
 public:
  KvPool() = default;
  KvPool(const ModelConfig& config, int32_t pages, int32_t page_size);

  int64_t value_stride() const { return value_stride_; }

  /// The panel that starts at `place`, a multiple of 16.
  const float* key_panel(int64_t layer, int64_t head, int64_t place) const {
    return keys_.data() + ((layer * kv_heads_ + head) * places() + place) * head_dim_;
  }
  const float* value(int64_t layer, int64_t head, int64_t place) const {
    return values_.data() + ((layer * kv_heads_ + head) * places() + place) * value_stride_;
  }
  /// Stores head_dim floats each.
  void write(int64_t layer, int64_t head, int64_t place, const float* key, const float* value);
  void copy(int64_t layer, int64_t head, int64_t from, int64_t to);

 private:
  int64_t kv_heads_ = 0;
  int64_t head_dim_ = 0;
  int64_t value_stride_ = 0;
  FloatBuffer keys_;
  FloatBuffer values_;
};

}  // namespace sheaf

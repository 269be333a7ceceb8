#include "cpu/kv_pool.h"

#include <algorithm>

#include "core/base/error.h"

namespace sheaf {

KvPlaces::KvPlaces(int32_t pages, int32_t page_size)
    : pages_(pages), page_size_(page_size), page_places_(round_up_to_panel(page_size)) {
  if (pages <= 0 || page_size <= 0) fail("key/value pool: {} pages of {} tokens", pages, page_size);
}

KvPool::KvPool(const ModelConfig& config, int32_t pages, int32_t page_size)
    : KvPlaces(pages, page_size), kv_heads_(config.kv_heads), head_dim_(config.head_dim) {
  value_stride_ = round_up_to_panel(head_dim_);
  const int64_t vectors = int64_t{config.layers} * kv_heads_;
  // The product may not fit 64 bits, so it is checked as a floating number first.
  const double bytes = static_cast<double>(places()) * static_cast<double>(vectors) *
                       static_cast<double>(head_dim_ + value_stride_) * sizeof(float);
  check_pool(bytes, false);
  keys_ = FloatBuffer(places() * vectors * head_dim_, "the keys of the key/value pool");
  values_ = FloatBuffer(places() * vectors * value_stride_, "the values of the key/value pool");
  check_pool(bytes, true);
}

void KvPool::write(int64_t layer, int64_t head, int64_t place, const float* key, const float* value) {
  float* column = keys_.data() +
                  ((layer * kv_heads_ + head) * places() + place / kPanel * kPanel) * head_dim_ +
                  place % kPanel;
  for (int64_t d = 0; d < head_dim_; ++d) column[d * kPanel] = key[d];
  std::copy(value, value + head_dim_,
            values_.data() + ((layer * kv_heads_ + head) * places() + place) * value_stride_);
}

void KvPool::copy(int64_t layer, int64_t head, int64_t from, int64_t to) {
  const int64_t first = (layer * kv_heads_ + head) * places();
  const auto column = [&](int64_t place) {
    return keys_.data() + (first + place / kPanel * kPanel) * head_dim_ + place % kPanel;
  };
  for (int64_t d = 0; d < head_dim_; ++d) column(to)[d * kPanel] = column(from)[d * kPanel];
  std::copy_n(values_.data() + (first + from) * value_stride_, head_dim_,
              values_.data() + (first + to) * value_stride_);
}

}  // namespace sheaf

#include "cpu/kv_pool.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"

namespace sheaf {

KvPlaces::KvPlaces(const ModelConfig& config, int32_t pages, int32_t page_size)
    : pages_(pages),
      page_size_(page_size),
      page_places_(round_up_to_panel(page_size)),
      layers_(config.layers),
      kv_heads_(config.kv_heads) {
  if (pages <= 0 || page_size <= 0) fail("key/value pool: {} pages of {} tokens", pages, page_size);
  stretch_ = std::min<int64_t>(1024, places());
}

KvPool::KvPool(const ModelConfig& config, int32_t pages, int32_t page_size)
    : KvPlaces(config, pages, page_size), head_dim_(config.head_dim) {
  value_stride_ = round_up_to_panel(head_dim_);
  const double bytes = vectors_as_double() * static_cast<double>(head_dim_ + value_stride_) * sizeof(float);
  check_pool(bytes, false);
  keys_ = FloatBuffer(vectors() * head_dim_, "the keys of the key/value pool");
  values_ = FloatBuffer(vectors() * value_stride_, "the values of the key/value pool");
  check_pool(bytes, true);
}

void KvPool::write(int64_t layer, int64_t head, int64_t place, const float* key, const float* value) {
  const int64_t at = index(layer, head, place);
  float* column = keys_.data() + at / kPanel * kPanel * head_dim_ + at % kPanel;
  for (int64_t d = 0; d < head_dim_; ++d) column[d * kPanel] = key[d];
  std::copy(value, value + head_dim_, values_.data() + at * value_stride_);
}

void KvPool::copy(int64_t layer, int64_t head, int64_t from, int64_t to) {
  const int64_t a = index(layer, head, from), b = index(layer, head, to);
  const auto column = [&](int64_t at) {
    return keys_.data() + at / kPanel * kPanel * head_dim_ + at % kPanel;
  };
  for (int64_t d = 0; d < head_dim_; ++d) column(b)[d * kPanel] = column(a)[d * kPanel];
  std::copy_n(values_.data() + a * value_stride_, head_dim_, values_.data() + b * value_stride_);
}

void KvPool::read(int64_t layer, int64_t head, int64_t place, float* key, float* value) const {
  const int64_t at = index(layer, head, place);
  const float* column = keys_.data() + at / kPanel * kPanel * head_dim_ + at % kPanel;
  for (int64_t d = 0; d < head_dim_; ++d) key[d] = column[d * kPanel];
  std::copy_n(values_.data() + at * value_stride_, head_dim_, value);
}

void KvPool::read(int64_t layer, int64_t head, int64_t place, std::byte* to) const {
  const int64_t at = index(layer, head, place);
  const float* column = keys_.data() + at / kPanel * kPanel * head_dim_ + at % kPanel;
  for (int64_t d = 0; d < head_dim_; ++d, to += sizeof(float))
    std::memcpy(to, column + d * kPanel, sizeof(float));
  std::memcpy(to, values_.data() + at * value_stride_, static_cast<size_t>(head_dim_) * sizeof(float));
}

void KvPool::write(int64_t layer, int64_t head, int64_t place, const std::byte* from) {
  const int64_t at = index(layer, head, place);
  float* column = keys_.data() + at / kPanel * kPanel * head_dim_ + at % kPanel;
  for (int64_t d = 0; d < head_dim_; ++d, from += sizeof(float))
    std::memcpy(column + d * kPanel, from, sizeof(float));
  std::memcpy(values_.data() + at * value_stride_, from, static_cast<size_t>(head_dim_) * sizeof(float));
}

}  // namespace sheaf

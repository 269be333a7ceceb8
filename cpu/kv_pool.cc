#include "cpu/kv_pool.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "cpu/kernels/int_kernels.h"

namespace sheaf {
namespace {

constexpr IntLayout kInARow{.chunk = 16, .step = 8, .together = 1};

}  // namespace

KvPool::KvPool(const ModelConfig& config, int32_t pages, int32_t page_size)
    : pages_(pages),
      page_size_(page_size),
      page_places_(round_up_to_panel(page_size)),
      layers_(config.layer_count()),
      kv_heads_(config.kv_heads) {
  if (pages <= 0 || page_size <= 0) fail("key/value pool: {} pages of {} tokens", pages, page_size);
  stretch_ = std::min<int64_t>(1024, places());
}

void KvPool::copy(int64_t layer, int64_t head, int64_t from, int64_t to) {
  std::vector<std::byte> pair(static_cast<size_t>(pair_bytes()));
  read(layer, head, from, pair.data());
  write(layer, head, to, pair.data());
}

FloatKvPool::FloatKvPool(const ModelConfig& config, int32_t pages, int32_t page_size)
    : KvPool(config, pages, page_size), head_dim_(config.head_dim) {
  value_stride_ = round_up_to_panel(head_dim_);
  const double bytes = vectors_as_double() * static_cast<double>(head_dim_ + value_stride_) * sizeof(float);
  check_pool(bytes, false);
  keys_ = FloatBuffer(vectors() * head_dim_, "the keys of the key/value pool");
  values_ = FloatBuffer(vectors() * value_stride_, "the values of the key/value pool");
  check_pool(bytes, true);
}

void FloatKvPool::write(int64_t layer, int64_t head, int64_t place, const float* key, const float* value) {
  const int64_t at = index(layer, head, place);
  float* column = key_at(at);
  for (int64_t d = 0; d < head_dim_; ++d) column[d * kPanel] = key[d];
  std::copy(value, value + head_dim_, value_at(at));
}

void FloatKvPool::read(int64_t layer, int64_t head, int64_t place, float* key, float* value) const {
  const int64_t at = index(layer, head, place);
  const float* column = key_at(at);
  for (int64_t d = 0; d < head_dim_; ++d) key[d] = column[d * kPanel];
  std::copy_n(value_at(at), head_dim_, value);
}

void FloatKvPool::read(int64_t layer, int64_t head, int64_t place, std::byte* to) const {
  const int64_t at = index(layer, head, place);
  for (int64_t d = 0; d < head_dim_; ++d, to += sizeof(float))
    std::memcpy(to, key_at(at) + d * kPanel, sizeof(float));
  std::memcpy(to, value_at(at), static_cast<size_t>(head_dim_) * sizeof(float));
}

void FloatKvPool::write(int64_t layer, int64_t head, int64_t place, const std::byte* from) {
  const int64_t at = index(layer, head, place);
  for (int64_t d = 0; d < head_dim_; ++d, from += sizeof(float))
    std::memcpy(key_at(at) + d * kPanel, from, sizeof(float));
  std::memcpy(value_at(at), from, static_cast<size_t>(head_dim_) * sizeof(float));
}

int64_t rounded_bytes(int64_t size) {
  return int64_t{sizeof(float)} + kInARow.bytes(size, 1);
}

void round_vector(const float* x, int64_t size, std::byte* to) {
  const float scale = quantize(x, size, 1, kInARow, 0, reinterpret_cast<int8_t*>(to + sizeof(float)));
  std::memcpy(to, &scale, sizeof(float));
}

void expand_vector(const std::byte* from, int64_t size, float* x) {
  float scale;
  std::memcpy(&scale, from, sizeof(float));
  const auto* numbers = reinterpret_cast<const int8_t*>(from + sizeof(float));
  for (int64_t i = 0; i < size; ++i) x[i] = scale * static_cast<float>(numbers[i]);
}

}  // namespace sheaf

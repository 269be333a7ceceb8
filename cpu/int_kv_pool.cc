#include "cpu/int_kv_pool.h"

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace sheaf {

IntKvPool::IntKvPool(const ModelConfig& config, const IntKernels& kernels, int32_t pages, int32_t page_size)
    : KvPool(config, pages, page_size), head_dim_(config.head_dim), layout_(kernels.panels) {
  const int64_t key_bytes = key_panel_bytes() / kPanel, value_bytes = value_chunk_bytes() / kPanel;
  const double bytes =
      vectors_as_double() * static_cast<double>(key_bytes + value_bytes + int64_t{3 * sizeof(float)});
  check_pool(bytes, false);
  keys_ = LargeBuffer<int8_t>(vectors() * key_bytes, "the keys of the key/value pool");
  values_ = LargeBuffer<int8_t>(vectors() * value_bytes, "the values of the key/value pool");
  key_scales_ = FloatBuffer(vectors(), "the scales of the key/value pool");
  log_scales_ = FloatBuffer(vectors(), "the scales of the key/value pool");
  inverse_scales_ = FloatBuffer(vectors(), "the scales of the key/value pool");
  check_pool(bytes, true);
}

void IntKvPool::write(int64_t layer, int64_t head, int64_t place, const float* key, const float* value) {
  const int64_t at = index(layer, head, place), in_panel = place % kPanel;
  key_scales_.data()[at] =
      quantize(key, head_dim_, kPlanes, layout_, in_panel, keys_.data() + at / kPanel * key_panel_bytes());
  // A value is a column of its chunk: dimension d of plane p lies at [d / 16][p][place / step][d % 16][place
  // % step].
  std::array<int8_t, 1024> room;
  std::vector<int8_t> more;
  const int64_t bytes = layout_.alone().bytes(head_dim_, kPlanes);
  if (bytes > int64_t{room.size()}) more.resize(static_cast<size_t>(bytes));
  int8_t* numbers = more.empty() ? room.data() : more.data();
  // A value of zeros weighs nothing whatever its scale, but counts in the sum of weights. NaN stays.
  constexpr float kLeast = 1e-20f;
  float scale = quantize(value, head_dim_, kPlanes, layout_.alone(), 0, numbers);
  if (scale < kLeast) scale = kLeast;
  log_scales_.data()[at] = std::log(scale);
  inverse_scales_.data()[at] = 1 / scale;
  each_value_byte([&numbers, to = values_.data() + value_start(at)](int64_t byte) { to[byte] = *numbers++; });
}

void IntKvPool::read(int64_t layer, int64_t head, int64_t place, float* key, float* value) const {
  const int64_t at = index(layer, head, place), chunk = layout_.chunk, step = layout_.step;
  const auto number = [flip = layout_.flip](const int8_t* high, int64_t plane) {
    const auto byte = [flip](int8_t written) { return static_cast<int8_t>(written ^ flip); };
    return static_cast<float>(256 * byte(high[0]) + byte(high[plane]));
  };
  const int8_t *keys = keys_.data() + key_start(at), *values = values_.data() + value_start(at);
  for (int64_t d = 0; d < head_dim_; ++d) {
    const int64_t piece = (d / chunk * kPlanes * chunk + d % chunk) / step;
    key[d] = key_scales_.data()[at] * number(keys + piece * kPanel * step + d % step, chunk * kPanel);
    value[d] = number(values + d / kChunk * value_panel_bytes() + d % kChunk * step, kChunk * kPanel) /
               inverse_scales_.data()[at];
  }
}

/// Calls with each run of bytes of a key and its value, the scales first, and its length.
template <class Visit>
void IntKvPool::each_run(int64_t at, Visit&& visit) const {
  for (const FloatBuffer* scales : {&key_scales_, &log_scales_, &inverse_scales_})
    visit(scales->data() + at, sizeof(float));
  for (int64_t piece = 0; piece < key_panel_bytes(); piece += kPanel * layout_.step)
    visit(keys_.data() + key_start(at) + piece, static_cast<size_t>(layout_.step));
  each_value_byte(
      [&visit, values = values_.data() + value_start(at)](int64_t byte) { visit(values + byte, size_t{1}); });
}

void IntKvPool::read(int64_t layer, int64_t head, int64_t place, std::byte* to) const {
  each_run(index(layer, head, place), [&to](const void* run, size_t bytes) {
    std::memcpy(to, run, bytes);
    to += bytes;
  });
}

void IntKvPool::write(int64_t layer, int64_t head, int64_t place, const std::byte* from) {
  each_run(index(layer, head, place), [&from](void* run, size_t bytes) {
    std::memcpy(run, from, bytes);
    from += bytes;
  });
}

}  // namespace sheaf

#pragma once
#include <cstddef>
#include <cstdint>

#include "core/model/config.h"
#include "cpu/kernels/kernels.h"
#include "cpu/large_buffer.h"

namespace sheaf {

/// The keys and values of all layers. A page takes a multiple of 16 places, so pages of 16, 32 … tokens waste
/// nothing. Places are cut into stretches, which hold all layers and heads one after the other: tokens that
/// come and go take few of the machine's large pages, and most keys of a head still lie in a row.
class KvPool {
 public:
  KvPool() = default;
  KvPool(const ModelConfig& config, int32_t pages, int32_t page_size);

  KvPool(KvPool&&) = default;
  KvPool& operator=(KvPool&&) = default;
  virtual ~KvPool() = default;

  /// Stores head_dim floats each; may be called for different places at once.
  virtual void write(int64_t layer, int64_t head, int64_t place, const float* key, const float* value) = 0;
  /// Gives them back, as exactly as they are held.
  virtual void read(int64_t layer, int64_t head, int64_t place, float* key, float* value) const = 0;
  /// A key and its value as bytes that give the same back.
  virtual int64_t pair_bytes() const = 0;
  virtual void read(int64_t layer, int64_t head, int64_t place, std::byte* to) const = 0;
  virtual void write(int64_t layer, int64_t head, int64_t place, const std::byte* from) = 0;
  void copy(int64_t layer, int64_t head, int64_t from, int64_t to);  ///< places

  int32_t pages() const { return pages_; }
  int32_t page_size() const { return page_size_; }
  int64_t places() const { return pages_ * page_places_; }
  /// Keys of all layers and heads, the last stretch filled up. Their number may not fit 64 bits, so it is
  /// first asked for as a floating number.
  int64_t vectors() const { return stretches() * stretch_ * layers_ * kv_heads_; }
  double vectors_as_double() const {
    return static_cast<double>(stretches() * stretch_) * static_cast<double>(layers_ * kv_heads_);
  }
  /// Of a head's vector; those of a stretch lie in a row.
  int64_t index(int64_t layer, int64_t head, int64_t place) const {
    return ((place / stretch_ * layers_ + layer) * kv_heads_ + head) * stretch_ + place % stretch_;
  }
  /// Places from this one to the end of its stretch.
  int64_t left_in_stretch(int64_t place) const { return stretch_ - place % stretch_; }

  /// The place of key `offset` of a page.
  int64_t place(int64_t page, int64_t offset) const { return page * page_places_ + offset; }
  int64_t place_of_slot(int64_t slot) const { return place(slot / page_size_, slot % page_size_); }

 private:
  int64_t stretches() const { return (places() + stretch_ - 1) / stretch_; }

  int32_t pages_ = 0;
  int32_t page_size_ = 0;
  int64_t page_places_ = 0;
  int64_t stretch_ = 1;
  int64_t layers_ = 0;
  int64_t kv_heads_ = 0;
};

/// The keys and values of all layers in fp32. Keys lie as panels of 16 slots, [slots / 16][head_dim][16], so
/// that a row's scores are the same product as a linear layer; values lie slot by slot, [slots][head_dim
/// rounded up to 16].
class FloatKvPool final : public KvPool {
 public:
  FloatKvPool() = default;
  FloatKvPool(const ModelConfig& config, int32_t pages, int32_t page_size);

  int64_t value_stride() const { return value_stride_; }

  /// The panel that starts at `place`, a multiple of 16.
  const float* key_panel(int64_t layer, int64_t head, int64_t place) const {
    return keys_.data() + index(layer, head, place) * head_dim_;
  }
  const float* value(int64_t layer, int64_t head, int64_t place) const {
    return values_.data() + index(layer, head, place) * value_stride_;
  }
  void write(int64_t layer, int64_t head, int64_t place, const float* key, const float* value) override;
  void read(int64_t layer, int64_t head, int64_t place, float* key, float* value) const override;
  int64_t pair_bytes() const override { return 2 * head_dim_ * int64_t{sizeof(float)}; }
  void read(int64_t layer, int64_t head, int64_t place, std::byte* to) const override;
  void write(int64_t layer, int64_t head, int64_t place, const std::byte* from) override;

 private:
  /// The first number of a key, whose others follow kPanel apart, and of a value.
  float* key_at(int64_t at) const { return keys_.data() + at / kPanel * kPanel * head_dim_ + at % kPanel; }
  float* value_at(int64_t at) const { return values_.data() + at * value_stride_; }

  int64_t head_dim_ = 0;
  int64_t value_stride_ = 0;
  FloatBuffer keys_;
  FloatBuffer values_;
};

/// A vector in whole numbers of 8 bits: its scale (fp32), then the numbers, filled up with zeros to a
/// multiple of 16. A number x becomes round(x / scale); scale = largest absolute value / 127, or NaN or
/// infinite where the vector has one.
int64_t rounded_bytes(int64_t size);
void round_vector(const float* x, int64_t size, std::byte* to);
void expand_vector(const std::byte* from, int64_t size, float* x);

}  // namespace sheaf

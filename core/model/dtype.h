#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace sheaf {

/// How the values of a matrix are stored. Those from e4m3_32 to nf4 are blocks that sheaf itself puts
/// together out of checkpoints whose scales lie apart (core/model/scaled_blocks.h). A GPU keeps no type after
/// nf4 packed.
enum class DType : uint8_t {
  f32,
  f16,
  q4_0,
  q4_1,
  q5_0,
  q8_0,
  q4_k,
  q5_k,
  q6_k,
  bf16,
  e4m3_32,
  e4m3_128,
  int4_32,
  int4_128,
  nf4,
  mxfp4,
  q2_k,
  q3_k,
  iq4_nl,
  iq4_xs
};

/// A value that need not be aligned.
template <class T>
T load_value(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

constexpr bool is_e4m3(DType dtype) {
  return dtype == DType::e4m3_32 || dtype == DType::e4m3_128;
}

/// A type that tensors of model files have, also one that sheaf does not read, so that their extent can be
/// checked.
struct TensorType {
  const char* name;
  int32_t block_values, block_bytes;  ///< 1 and the element size for plain types
  int32_t ggml;                       ///< number in GGUF files; -1: they do not have it
  bool safetensors = false;           ///< whether safetensors files have it, under `name`
  std::optional<DType> dtype = {};    ///< empty: sheaf does not read it
  void (*to_f32)(const std::byte* data, int64_t count, float* out) = nullptr;
  int32_t half_scales = 0;  ///< fp16 scales of a block, side by side
  int32_t scales_at = 0;    ///< their first byte in the block
};
const TensorType& tensor_type(DType dtype);
/// Null for a number that ggml does not use (or no longer).
const TensorType* find_ggml_type(uint32_t number);
const TensorType* find_safetensors_type(std::string_view name);
/// "F32, F16, ...": the types that sheaf reads of GGUF files, or of safetensors files.
std::string readable_types(bool gguf);

inline const char* dtype_name(DType dtype) {
  return tensor_type(dtype).name;
}
inline int32_t block_values(DType dtype) {
  return tensor_type(dtype).block_values;
}
inline int32_t block_bytes(DType dtype) {
  return tensor_type(dtype).block_bytes;
}

/// Converts `count` values (a multiple of the block size) starting at `data` to fp32.
void to_f32(DType dtype, const std::byte* data, int64_t count, float* out);
/// Converts them to the bits of bf16, rounded to nearest even; a NaN becomes 0x7fff, as on a GPU.
void to_bf16(DType dtype, const std::byte* data, int64_t count, uint16_t* out);

// A weight that is NaN or infinite, as a training that diverged leaves it, would give answers that mean
// nothing. Matrix looks at every value that leaves it with these.

bool all_finite(const float* values, int64_t count);
/// Whether all of these bf16 values, given as their bits, are finite.
bool all_finite(const uint16_t* bits, int64_t count);

/// Whether `count` values (whole blocks), stored as `dtype`, are sure to be finite in fp32 and in bf16. It
/// looks at scales and at bytes that may be NaN, not at every product of the two: false also where a scale is
/// so large that a product might not fit.
bool surely_finite(DType dtype, const std::byte* data, int64_t count);

}  // namespace sheaf

#include "cpu/rounded_vector.h"

#include <cstring>

#include "cpu/kernels/int_kernels.h"

namespace sheaf {
namespace {

constexpr IntLayout kInARow{.chunk = 16, .step = 8, .together = 1};

}  // namespace

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

#pragma once
// Rows and weights of e4m3 on the device, and the numbers that they stand for.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/model/e4m3.h"
#include "cuda/base/device_memory.h"
#include "cuda/ops/ops.h"

namespace sheaf::test {

using namespace cuda;

template <class T>
DeviceMemory<T> send(const std::vector<T>& values) {
  DeviceMemory<T> device(static_cast<int64_t>(values.size()));
  check(cudaMemcpy(device.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "send");
  return device;
}
template <class T>
std::vector<T> fetch(const DeviceMemory<T>& device) {
  check(cudaDeviceSynchronize(), "kernels");
  std::vector<T> values(static_cast<size_t>(device.size()));
  check(cudaMemcpy(values.data(), device.data(), values.size() * sizeof(T), cudaMemcpyDeviceToHost), "fetch");
  return values;
}

/// What rows of e4m3 stand for.
inline std::vector<double> numbers_of(const DeviceMemory<e4m3>& values, const DeviceMemory<float>& scales) {
  const auto bits = fetch(values);
  const auto factors = fetch(scales);
  const size_t cols = bits.size() / factors.size();
  std::vector<double> out(bits.size());
  for (size_t i = 0; i < bits.size(); ++i)
    out[i] = static_cast<double>(from_e4m3(bits[i].__x)) * static_cast<double>(factors[i / cols]);
  return out;
}

/// Rows of e4m3 on the device.
struct Rows {
  Rows(int64_t rows, int64_t cols) : values(rows * cols), scales(rows), blocks(rows * fp8_blocks(cols)) {
    check(cudaMemset(values.data(), 0x7f, static_cast<size_t>(values.size())), "poison");
    for (const auto* memory : {&scales, &blocks})
      check(cudaMemset(memory->data(), 0xff, static_cast<size_t>(memory->size()) * 4), "poison");
  }
  Fp8Rows view() const { return {values.data(), scales.data(), blocks.data()}; }
  std::vector<double> numbers() const { return numbers_of(values, scales); }

  DeviceMemory<e4m3> values;
  DeviceMemory<float> scales, blocks;
};

struct Weight {
  Weight(const std::vector<float>& given, int64_t rows, int64_t cols) : values(rows * cols), scales(rows) {
    std::vector<bf16> rounded;
    for (const float number : given) rounded.push_back(__float2bfloat16(number));
    round_weights(send(rounded).data(), rows, cols, values.data(), scales.data(), nullptr);
    check(cudaDeviceSynchronize(), "weights");
  }
  Fp8Weight view() const { return {values.data(), scales.data()}; }
  std::vector<double> numbers() const { return numbers_of(values, scales); }

  DeviceMemory<e4m3> values;
  DeviceMemory<float> scales;
};

/// Numbers whose size varies from row to row and from block to block.
inline std::vector<float> uneven(int64_t rows, int64_t cols, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> numbers(static_cast<size_t>(rows * cols));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t col = 0; col < cols; ++col)
      numbers[static_cast<size_t>(row * cols + col)] =
          normal(random) * std::exp2(static_cast<float>((row * 7 + col / kFp8Block * 3) % 5 - 2));
  return numbers;
}

inline double relative_error(const std::vector<double>& got, const std::vector<double>& right) {
  double error = 0, square = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    error += (got[i] - right[i]) * (got[i] - right[i]);
    square += right[i] * right[i];
  }
  return std::sqrt(error / square);
}

}  // namespace sheaf::test

#pragma once
#include "cuda/base/device_memory.h"
#include "cuda/base/floats.h"

namespace sheaf::cuda {

/// Room for rows of e4m3 values.
struct Fp8Memory {
  DeviceMemory<e4m3> values;
  DeviceMemory<float> scales, blocks;

  void grow(int64_t rows, int64_t cols) {
    values.grow(rows * cols);
    scales.grow(rows);
    blocks.grow(rows * fp8_blocks(cols));
  }
  Fp8Rows rows() const { return {values.data(), scales.data(), blocks.data()}; }
};

}  // namespace sheaf::cuda

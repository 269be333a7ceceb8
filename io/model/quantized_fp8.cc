#include <algorithm>

#include "io/model/quantized_parts.h"

namespace sheaf {
namespace {

/// Which scale a row's block has.
struct ScaleGrid {
  FileTensor scales;
  int64_t block_rows, block_cols;  ///< of one scale
  int64_t across;                  ///< scales side by side
  float at(int64_t row, int64_t col) const {
    return float_at(scales, row / block_rows * across + col / block_cols);
  }
};

ScaleGrid scale_grid(const QuantizedParts& parts, const Quantization& quantization) {
  const char* part = parts.has("weight_scale_inv") ? "weight_scale_inv" : "weight_scale";
  const FileTensor scales = parts.raw(part, {"F32", "F16", "BF16"});
  const int64_t rows = parts.rows(), cols = parts.cols();
  const auto shaped = [&](std::initializer_list<int64_t> shape) {
    return std::ranges::equal(scales.shape, shape);
  };
  if (quantization.block_rows > 0) {
    const int64_t down = (rows + quantization.block_rows - 1) / quantization.block_rows;
    const int64_t across = (cols + quantization.block_cols - 1) / quantization.block_cols;
    if (shaped({down, across})) return {scales, quantization.block_rows, quantization.block_cols, across};
  }
  if (scales.values() == 1) return {scales, rows, cols, 1};
  if (shaped({rows}) || shaped({rows, 1})) return {scales, 1, cols, 1};
  parts.wrong_shape(part, scales,
                    fmt::format("one scale, one for each of {} rows, or one for each block", rows));
}

}  // namespace

std::optional<Matrix> take_fp8(const QuantizedParts& parts, const Quantization& quantization) {
  if (!parts.has("weight_scale") && !parts.has("weight_scale_inv")) return {};
  const FileTensor values = parts.shaped("weight", {"F8_E4M3"}, {parts.rows(), parts.cols()});
  if (parts.cols() % 32 != 0)
    parts.bad("weight", "has {} columns; sheaf needs a multiple of 32", parts.cols());
  ScaleGrid grid = scale_grid(parts, quantization);
  // Activations and the cache get scales of their own here.
  parts.ignore({"input_scale", "input_scale_ub", "output_scale", "k_scale", "v_scale"});
  const bool large =
      parts.cols() % 128 == 0 && (grid.block_cols >= parts.cols() || grid.block_cols % 128 == 0);
  const DType dtype = large ? DType::e4m3_128 : DType::e4m3_32;
  const int64_t cols = parts.cols(), block = block_values(dtype);
  const auto read = [values, grid = std::move(grid), cols, block](int64_t first, int64_t count,
                                                                  std::byte* out) {
    for (int64_t row = first; row < first + count; ++row) {
      for (int64_t col = 0; col < cols; col += block) {
        put_scale(out, grid.at(row, col));
        std::memcpy(out + kScaleBytes, values.data + row * cols + col, static_cast<size_t>(block));
        out += kScaleBytes + block;
      }
    }
  };
  return parts.made("weight", dtype, values, cols, read);
}

}  // namespace sheaf

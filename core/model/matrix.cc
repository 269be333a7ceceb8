#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/model/model.h"

namespace sheaf {
namespace {

/// Where row `row` of two-halves order lies when each head is stored pair by pair.
int64_t paired_row(int64_t row, int64_t head_dim) {
  const int64_t in_head = row % head_dim;
  const int64_t half = head_dim / 2;
  return row - in_head + in_head % half * 2 + in_head / half;
}

// Four floats, the width that every 64-bit machine has, and how many of them stay in registers while all
// ranks are added. Written out because the compiler does not find it itself (four times as slow).
using Quad __attribute__((vector_size(16), aligned(4), may_alias)) = float;
constexpr int64_t kQuads = 8;
constexpr int64_t kColumns = 4 * kQuads;

void add_adapter(const LowRank& adapter, int64_t row, int64_t cols, float* out) {
  const auto weight = [&](int64_t r) {
    return adapter.scale * adapter.b[static_cast<size_t>(row * adapter.rank + r)];
  };
  int64_t c = 0;
  for (; c + kColumns <= cols; c += kColumns) {
    Quad sums[kQuads];
    auto* to = reinterpret_cast<Quad*>(out + c);
#pragma GCC unroll 8
    for (int64_t q = 0; q < kQuads; ++q) sums[q] = to[q];
    for (int64_t r = 0; r < adapter.rank; ++r) {
      const auto* a = reinterpret_cast<const Quad*>(adapter.a.data() + r * cols + c);
      const float by = weight(r);
#pragma GCC unroll 8
      for (int64_t q = 0; q < kQuads; ++q) sums[q] += by * a[q];
    }
#pragma GCC unroll 8
    for (int64_t q = 0; q < kQuads; ++q) to[q] = sums[q];
  }
  for (; c < cols; ++c)
    for (int64_t r = 0; r < adapter.rank; ++r)
      out[c] += weight(r) * adapter.a[static_cast<size_t>(r * cols + c)];
}

}  // namespace

void Matrix::read(int64_t first, int64_t count, float* out) const {
  if (first < 0 || count < 0 || first > rows || count > rows - first) {
    fail("{}: rows {} to {} were asked for, but there are {}", name, first, first + count, rows);
  }
  if (rope_head_dim == 0 && !adapter) return to_f32(dtype, data + first * row_bytes(), count * cols, out);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = first + i;
    const int64_t stored = rope_head_dim == 0 ? row : paired_row(row, rope_head_dim);
    to_f32(dtype, data + stored * row_bytes(), cols, out + i * cols);
    if (adapter) add_adapter(*adapter, row, cols, out + i * cols);
  }
}

void Matrix::read_stored(int64_t first, int64_t count, std::byte* out) const {
  if (first < 0 || count < 0 || first > rows || count > rows - first)
    fail("{}: rows {} to {} were asked for, but there are {}", name, first, first + count, rows);
  if (adapter) fail("{}: rows with an adapter are stored nowhere", name);
  const auto bytes = static_cast<size_t>(row_bytes());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = rope_head_dim == 0 ? first + i : paired_row(first + i, rope_head_dim);
    std::memcpy(out + i * row_bytes(), data + row * row_bytes(), bytes);
  }
}

std::vector<float> Matrix::read_all() const {
  std::vector<float> values(static_cast<size_t>(rows * cols));
  read(0, rows, values.data());
  return values;
}

Matrix Matrix::slice(int64_t first, int64_t count, std::string slice_name) const {
  if (first < 0 || count < 0 || first > rows || count > rows - first) {
    fail("{}: rows {} to {} were asked for, but there are {}", name, first, first + count, rows);
  }
  if (rope_head_dim != 0 && (first % rope_head_dim != 0 || count % rope_head_dim != 0)) {
    fail("{}: rows {} to {} are not whole heads", name, first, first + count);
  }
  Matrix part = *this;
  part.name = std::move(slice_name);
  part.rows = count;
  part.data = data + first * row_bytes();
  if (adapter) {
    auto cut = std::make_shared<LowRank>(*adapter);
    const auto from = cut->b.begin() + static_cast<std::ptrdiff_t>(first * cut->rank);
    cut->b = std::vector<float>(from, from + static_cast<std::ptrdiff_t>(count * cut->rank));
    part.adapter = std::move(cut);
  }
  return part;
}

}  // namespace sheaf

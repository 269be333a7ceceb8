#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/model/e4m3.h"
#include "core/model/model.h"
#include "core/model/scaled_blocks.h"

namespace sheaf {
namespace {

/// Where row `row` of two-halves order lies when `dim` rows of each head are stored pair by pair.
int64_t paired_row(int64_t row, int64_t head_dim, int64_t dim) {
  const int64_t in_head = row % head_dim, half = dim / 2;
  return in_head >= dim ? row : row - in_head + in_head % half * 2 + in_head / half;
}

// Four floats, the width that every 64-bit machine has, and how many of them stay in registers while all
// ranks are added. Written out because the compiler does not find it itself (four times as slow).
using Quad __attribute__((vector_size(16))) = float;
constexpr int64_t kQuads = 8;
constexpr int64_t kColumns = 4 * kQuads;

/// Floats need not be aligned like a Quad.
Quad quad_at(const float* from) {
  Quad quad;
  std::memcpy(&quad, from, sizeof quad);
  return quad;
}

void add_adapter(const LowRank& adapter, int64_t row, int64_t cols, float* out) {
  const auto weight = [&](int64_t r) {
    return adapter.scale * adapter.b[static_cast<size_t>(row * adapter.rank + r)];
  };
  int64_t c = 0;
  for (; c + kColumns <= cols; c += kColumns) {
    Quad sums[kQuads];
#pragma GCC unroll 8
    for (int64_t q = 0; q < kQuads; ++q) sums[q] = quad_at(out + c + 4 * q);
    for (int64_t r = 0; r < adapter.rank; ++r) {
      const float* a = adapter.a.data() + r * cols + c;
      const float by = weight(r);
#pragma GCC unroll 8
      for (int64_t q = 0; q < kQuads; ++q) sums[q] += by * quad_at(a + 4 * q);
    }
#pragma GCC unroll 8
    for (int64_t q = 0; q < kQuads; ++q) std::memcpy(out + c + 4 * q, &sums[q], sizeof(Quad));
  }
  for (; c < cols; ++c)
    for (int64_t r = 0; r < adapter.rank; ++r)
      out[c] += weight(r) * adapter.a[static_cast<size_t>(r * cols + c)];
}

constexpr int64_t kRowsAtOnce = 64;  // rows of one buffer, which stay in the cache until they are checked

/// A row of blocks of e4m3 as it is, where they have one scale.
bool copy_e4m3(const std::byte* row, DType dtype, int64_t cols, uint8_t* out, float& scale) {
  const int64_t values = block_values(dtype), bytes = block_bytes(dtype), blocks = cols / values;
  for (int64_t i = 1; i < blocks; ++i)
    if (std::memcmp(row + i * bytes, row, kScaleBytes) != 0) return false;
  std::memcpy(&scale, row, sizeof scale);
  for (int64_t i = 0; i < blocks; ++i)
    std::memcpy(out + i * values, row + i * bytes + kScaleBytes, static_cast<size_t>(values));
  return true;
}

}  // namespace

void Matrix::check_rows(int64_t first, int64_t count) const {
  if (first < 0 || count < 0 || first > rows || count > rows - first)
    fail("{}: rows {} to {} were asked for, but there are {}", name, first, first + count, rows);
}

const std::byte* Matrix::stored(int64_t first, int64_t count, std::vector<std::byte>& buffer) const {
  if (in_place()) return data + first * row_bytes();
  const auto bytes = static_cast<size_t>(row_bytes());
  buffer.resize(static_cast<size_t>(count) * bytes);
  if (source && rope_head_dim == 0) {
    source->read(first, count, buffer.data());
    return buffer.data();
  }
  const int64_t dim = rope_dim > 0 ? rope_dim : rope_head_dim;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = paired_row(first + i, rope_head_dim, dim);
    std::byte* to = buffer.data() + i * row_bytes();
    if (source)
      source->read(row, 1, to);
    else
      std::memcpy(to, data + row * row_bytes(), bytes);
  }
  return buffer.data();
}

void Matrix::convert(int64_t first, int64_t count, float* out) const {
  std::vector<std::byte> buffer;
  to_f32(dtype, stored(first, count, buffer), count * cols, out);
}

void Matrix::refuse_rows(int64_t first, int64_t count) const {
  std::vector<float> row(static_cast<size_t>(cols));
  const std::string_view from = file.empty() ? "memory" : std::string_view(file);
  for (int64_t i = first; i < first + count; ++i) {
    convert(i, 1, row.data());
    if (all_finite(row.data(), cols)) continue;
    const bool nan = std::ranges::any_of(row, [](float value) { return value != value; });
    refuse(
        "{}: tensor {} holds {}: a training that diverged leaves such weights, and so does damage; use an "
        "earlier checkpoint, or get the file again",
        from, name, nan ? "NaN" : "an infinity");
  }
  if (adapter)
    refuse(
        "{}: tensors {}.lora_A.weight and {}.lora_B.weight: merging them into {} overflows: a training that "
        "diverged leaves such an adapter; use an earlier checkpoint, or a smaller lora_alpha",
        adapter->file, adapter->module, adapter->module, name);
  refuse(
      "{}: tensor {} holds a value that overflows bf16, as which a GPU keeps it; use an earlier checkpoint, "
      "or set engine.device: cpu",
      from, name);
}

void Matrix::read(int64_t first, int64_t count, float* out) const {
  check_rows(first, count);
  for (int64_t done = 0; done < count; done += kRowsAtOnce) {
    const int64_t now = std::min(kRowsAtOnce, count - done);
    float* rows_out = out + done * cols;
    convert(first + done, now, rows_out);
    bool finite = all_finite(rows_out, now * cols);
    if (finite && adapter) {
      for (int64_t i = 0; i < now; ++i) add_adapter(*adapter, first + done + i, cols, rows_out + i * cols);
      finite = all_finite(rows_out, now * cols);
    }
    if (!finite) refuse_rows(first + done, now);
  }
}

void Matrix::check_finite(int64_t first, int64_t count) const {
  check_rows(first, count);
  std::vector<std::byte> buffer;
  std::vector<float> row;
  for (int64_t done = 0; done < count; done += kRowsAtOnce) {
    const int64_t now = std::min(kRowsAtOnce, count - done);
    if (!adapter && surely_finite(dtype, stored(first + done, now, buffer), now * cols)) continue;
    row.resize(static_cast<size_t>(cols));
    for (int64_t i = 0; i < now; ++i) read(first + done + i, 1, row.data());
  }
}

void Matrix::read_bf16(int64_t first, int64_t count, uint16_t* out) const {
  check_rows(first, count);
  std::vector<std::byte> buffer;
  std::vector<float> merged(adapter ? static_cast<size_t>(cols) : 0);
  const int64_t at_once = adapter ? 1 : kRowsAtOnce;
  for (int64_t done = 0; done < count; done += at_once) {
    const int64_t now = std::min(at_once, count - done);
    if (adapter) {
      read(first + done, 1, merged.data());
      to_bf16(DType::f32, reinterpret_cast<const std::byte*>(merged.data()), cols, out + done * cols);
    } else {
      to_bf16(dtype, stored(first + done, now, buffer), now * cols, out + done * cols);
    }
    if (!all_finite(out + done * cols, now * cols)) refuse_rows(first + done, now);
  }
}

void Matrix::read_stored(int64_t first, int64_t count, std::byte* out) const {
  check_rows(first, count);
  std::vector<std::byte> buffer;
  if (source && rope_head_dim == 0)
    source->read(first, count, out);
  else
    std::memcpy(out, stored(first, count, buffer), static_cast<size_t>(count * row_bytes()));
  if (!adapter && surely_finite(dtype, out, count * cols)) return;
  // The device makes bf16 of it, with the adapter.
  std::vector<uint16_t> rounded(static_cast<size_t>(cols));
  for (int64_t i = 0; i < count; ++i) read_bf16(first + i, 1, rounded.data());
}

void Matrix::read_e4m3(int64_t first, int64_t count, uint8_t* out, float* scales) const {
  check_rows(first, count);
  const bool narrow = is_e4m3(dtype) && !adapter;
  std::vector<std::byte> buffer;
  std::vector<float> values;
  for (int64_t done = 0; done < count; done += kRowsAtOnce) {
    const int64_t now = std::min(kRowsAtOnce, count - done);
    const std::byte* as_stored = narrow ? stored(first + done, now, buffer) : nullptr;
    if (!narrow || !surely_finite(dtype, as_stored, now * cols)) {
      values.resize(static_cast<size_t>(now * cols));
      read(first + done, now, values.data());
    }
    for (int64_t i = 0; i < now; ++i) {
      uint8_t* to = out + (done + i) * cols;
      float& scale = scales[done + i];
      if (narrow && copy_e4m3(as_stored + i * row_bytes(), dtype, cols, to, scale)) continue;
      if (narrow) {
        values.resize(static_cast<size_t>(cols));
        to_f32(dtype, as_stored + i * row_bytes(), cols, values.data());
      }
      scale = to_e4m3({values.data() + (narrow ? 0 : i * cols), static_cast<size_t>(cols)}, to,
                      dtype == DType::mxfp4 && !adapter);
    }
  }
}

std::vector<float> Matrix::read_all() const {
  if (empty()) return {};
  std::vector<float> values(static_cast<size_t>(rows * cols));
  read(0, rows, values.data());
  return values;
}

Matrix Matrix::slice(int64_t first, int64_t count, std::string slice_name) const {
  check_rows(first, count);
  if (rope_head_dim != 0 && (first % rope_head_dim != 0 || count % rope_head_dim != 0)) {
    fail("{}: rows {} to {} are not whole heads", name, first, first + count);
  }
  Matrix part = *this;
  part.name = std::move(slice_name);
  part.rows = count;
  if (source) {
    auto later = std::make_shared<StoredRows>(*source);
    later->read = [all = source, first](int64_t from, int64_t rows_read, std::byte* out) {
      all->read(first + from, rows_read, out);
    };
    later->data += first * source->row_bytes;
    part.source = std::move(later);
  } else {
    part.data = data + first * row_bytes();
  }
  if (adapter) {
    auto cut = std::make_shared<LowRank>(*adapter);
    const auto from = cut->b.begin() + static_cast<std::ptrdiff_t>(first * cut->rank);
    cut->b = std::vector<float>(from, from + static_cast<std::ptrdiff_t>(count * cut->rank));
    part.adapter = std::move(cut);
  }
  return part;
}

}  // namespace sheaf

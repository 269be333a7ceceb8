#include <algorithm>
#include <array>
#include <utility>

#include "io/model/quantized_parts.h"

namespace sheaf {
namespace {

using Kind = Quantization::Kind;

/// int4 in one of three layouts: words of eight values, scales and zero points.
struct Int4 {
  Kind kind = Kind::gptq;
  int64_t rows = 0, cols = 0, group = 0, groups = 0, zero_offset = 0;
  FileTensor words, scales;
  std::optional<FileTensor> zeros;

  /// In a word of eight rows, AWQ has the even ones first.
  static int awq_place(int64_t row) {
    constexpr int place[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return place[row % 8];
  }

  /// Eight columns of a row from 8 `eighth` on, the first in the low bits. Not for AWQ.
  uint32_t word(int64_t row, int64_t eighth) const {
    return word_at(words, kind == Kind::gptq ? eighth * rows + row : row * (cols / 8) + eighth);
  }
  /// The same columns of the rows from 8 `rows_eighth` on, of AWQ.
  std::array<uint32_t, 8> eight_words(int64_t rows_eighth, int64_t eighth) const {
    std::array<uint32_t, 8> w{};  // by column
    for (size_t i = 0; i < 8; ++i)
      w[i] = word_at(words, (eighth * 8 + static_cast<int64_t>(i)) * (rows / 8) + rows_eighth);
    // Turns them into words by row: in halves, quarters and eighths.
    constexpr std::pair<size_t, uint32_t> kSteps[] = {{4, 0x0000ffff}, {2, 0x00ff00ff}, {1, 0x0f0f0f0f}};
    for (const auto& [step, mask] : kSteps) {
      for (size_t i = 0; i < 8; ++i) {
        if (i & step) continue;
        const uint32_t swapped = (w[i] >> 4 * step ^ w[i + step]) & mask;
        w[i + step] ^= swapped;
        w[i] ^= swapped << 4 * step;
      }
    }
    return w;
  }
  float scale(int64_t row, int64_t its_group) const {
    return float_at(scales, kind == Kind::packed_int4 ? row * groups + its_group : its_group * rows + row);
  }
  uint32_t zero(int64_t row, int64_t its_group) const {
    if (!zeros) return 8;
    if (kind == Kind::packed_int4) return word_at(*zeros, row / 8 * groups + its_group) >> 4 * (row % 8) & 15;
    const uint32_t of_eight_rows = word_at(*zeros, its_group * (rows / 8) + row / 8);
    const auto place = kind == Kind::awq ? awq_place(row) : static_cast<int>(row % 8);
    return (of_eight_rows >> 4 * place & 15) + static_cast<uint32_t>(zero_offset);
  }

  void read(DType dtype, int64_t first, int64_t count, std::byte* out) const {
    const int64_t block = block_values(dtype), bytes = block_bytes(dtype), blocks = cols / block;
    // Rows inside: two of the layouts have them side by side.
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t its_group = b * block / group;
      for (int64_t i = 0; i < count; ++i) {
        std::byte* to = out + (i * blocks + b) * bytes;
        put_scale(to, scale(first + i, its_group), zero(first + i, its_group));
        if (kind != Kind::awq)
          for (int64_t w = 0; w < block / 8; ++w) put_word(to, w, word(first + i, b * block / 8 + w));
      }
      if (kind != Kind::awq) continue;
      for (int64_t eight = first / 8; eight * 8 < first + count; ++eight) {
        const int64_t from = std::max(first, eight * 8), to = std::min(first + count, eight * 8 + 8);
        for (int64_t w = 0; w < block / 8; ++w) {
          const auto by_row = eight_words(eight, b * block / 8 + w);
          for (int64_t row = from; row < to; ++row)
            put_word(out + ((row - first) * blocks + b) * bytes, w,
                     by_row[static_cast<size_t>(awq_place(row))]);
        }
      }
    }
  }

  /// Where columns were sorted before they were grouped (desc_act), neighbours have different scales: such
  /// rows are fp32.
  void read_sorted(const FileTensor& sorted, int64_t first, int64_t count, std::byte* out) const {
    for (int64_t eighth = 0; eighth < cols / 8; ++eighth) {
      for (int64_t i = 0; i < count; ++i) {
        const uint32_t packed = word(first + i, eighth);
        for (int64_t c = 0; c < 8; ++c) {
          const auto its_group = static_cast<int64_t>(word_at(sorted, eighth * 8 + c));
          const auto steps =
              static_cast<int>(packed >> 4 * c & 15) - static_cast<int>(zero(first + i, its_group));
          const float value = scale(first + i, its_group) * static_cast<float>(steps);
          std::memcpy(out + 4 * (i * cols + eighth * 8 + c), &value, sizeof value);
        }
      }
    }
  }

  static void put_word(std::byte* block, int64_t index, uint32_t word) {
    std::memcpy(block + kScaleBytes + 4 * index, &word, sizeof word);
  }
};

/// The group of every column, where that is not simply the next ones together.
std::optional<FileTensor> sorted_groups(const QuantizedParts& parts, const Int4& int4) {
  if (int4.kind != Kind::gptq || !parts.has("g_idx")) return {};
  const FileTensor groups = parts.shaped("g_idx", {"I32", "U32"}, {parts.cols()});
  bool in_order = true;
  for (int64_t c = 0; c < parts.cols(); ++c) {
    const auto group = static_cast<int64_t>(word_at(groups, c));
    if (group >= int4.groups) parts.bad("g_idx", "names group {} of {}", group, int4.groups);
    in_order = in_order && group == c / int4.group;
  }
  if (in_order) return {};
  return groups;
}

}  // namespace

std::optional<Matrix> take_int4(const QuantizedParts& parts, const Quantization& quantization) {
  const bool by_rows = quantization.kind == Kind::packed_int4;
  const char* words = by_rows ? "weight_packed" : "qweight";
  if (!parts.has(words)) return {};
  const int64_t rows = parts.rows(), cols = parts.cols();
  Int4 int4;
  int4.kind = quantization.kind;
  int4.rows = rows;
  int4.cols = cols;
  int4.group = quantization.group == 0 ? cols : quantization.group;
  int4.zero_offset = quantization.zero_offset;
  if (cols % int4.group != 0 || cols % 32 != 0 || rows % 8 != 0)
    parts.bad(words, "is [{}, {}]; sheaf needs whole groups of {} columns, and of 8 rows", rows, cols,
              int4.group);
  int4.groups = cols / int4.group;
  if (by_rows) {
    int4.words = parts.words(words, rows, cols / 8);
    int4.scales = parts.scales("weight_scale", rows, int4.groups);
    if (parts.has("weight_zero_point")) int4.zeros = parts.words("weight_zero_point", rows / 8, int4.groups);
    parts.ignore({"weight_shape"});
  } else {
    int4.words = quantization.kind == Kind::gptq ? parts.words(words, cols / 8, rows)
                                                 : parts.words(words, cols, rows / 8);
    int4.scales = parts.scales("scales", int4.groups, rows);
    int4.zeros = parts.words("qzeros", int4.groups, rows / 8);
  }
  const FileTensor values = int4.words;
  if (const auto groups = sorted_groups(parts, int4))
    return parts.made(
        words, DType::f32, values, 0,
        [int4 = std::move(int4), groups = *groups](int64_t first, int64_t count, std::byte* out) {
          int4.read_sorted(groups, first, count, out);
        });
  const DType dtype = int4.group % 128 == 0 ? DType::int4_128 : DType::int4_32;
  return parts.made(words, dtype, values, by_rows ? cols / 2 : 0,
                    [int4 = std::move(int4), dtype](int64_t first, int64_t count, std::byte* out) {
                      int4.read(dtype, first, count, out);
                    });
}

}  // namespace sheaf

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
};

class Int4Rows final : public StoredRows {
 public:
  Int4Rows(std::string name, Int4 parts, DType dtype)
      : name_(std::move(name)), parts_(std::move(parts)), dtype_(dtype), block_(block_values(dtype)) {}

  void read(int64_t first, int64_t count, std::byte* out) const override {
    const int64_t bytes = block_bytes(dtype_), blocks = parts_.cols / block_;
    // Rows inside: two of the layouts have them side by side.
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t group = b * block_ / parts_.group;
      for (int64_t i = 0; i < count; ++i) {
        std::byte* to = out + (i * blocks + b) * bytes;
        put_scale(to, parts_.scale(first + i, group), parts_.zero(first + i, group));
        if (parts_.kind != Kind::awq)
          for (int64_t w = 0; w < block_ / 8; ++w)
            put_word(to, w, parts_.word(first + i, b * block_ / 8 + w));
      }
      if (parts_.kind != Kind::awq) continue;
      for (int64_t eight = first / 8; eight * 8 < first + count; ++eight) {
        const int64_t from = std::max(first, eight * 8), to = std::min(first + count, eight * 8 + 8);
        for (int64_t w = 0; w < block_ / 8; ++w) {
          const auto words = parts_.eight_words(eight, b * block_ / 8 + w);
          for (int64_t row = from; row < to; ++row)
            put_word(out + ((row - first) * blocks + b) * bytes, w,
                     words[static_cast<size_t>(Int4::awq_place(row))]);
        }
      }
    }
  }
  void page_in(int64_t first, int64_t count) const override {
    if (parts_.kind == Kind::packed_int4)
      page_in_bytes(parts_.words.data + first * parts_.cols / 2, count * parts_.cols / 2, name_);
    else
      page_in_bytes(parts_.words.data, static_cast<int64_t>(parts_.words.size), name_);
  }

 private:
  static void put_word(std::byte* block, int64_t index, uint32_t word) {
    std::memcpy(block + kScaleBytes + 4 * index, &word, sizeof word);
  }

  std::string name_;
  Int4 parts_;
  DType dtype_;
  int64_t block_;
};

/// Where columns were sorted before they were grouped (desc_act), neighbours have different scales: such rows
/// are fp32.
class SortedInt4Rows final : public StoredRows {
 public:
  SortedInt4Rows(std::string name, Int4 parts, const FileTensor& groups)
      : name_(std::move(name)), parts_(std::move(parts)), groups_(groups) {}

  void read(int64_t first, int64_t count, std::byte* out) const override {
    for (int64_t eighth = 0; eighth < parts_.cols / 8; ++eighth) {
      for (int64_t i = 0; i < count; ++i) {
        const uint32_t word = parts_.word(first + i, eighth);
        for (int64_t c = 0; c < 8; ++c) {
          const auto group = static_cast<int64_t>(word_at(groups_, eighth * 8 + c));
          const auto steps =
              static_cast<int>(word >> 4 * c & 15) - static_cast<int>(parts_.zero(first + i, group));
          const float value = parts_.scale(first + i, group) * static_cast<float>(steps);
          std::memcpy(out + 4 * (i * parts_.cols + eighth * 8 + c), &value, sizeof value);
        }
      }
    }
  }
  void page_in(int64_t /*first*/, int64_t /*count*/) const override {
    page_in_bytes(parts_.words.data, static_cast<int64_t>(parts_.words.size), name_);
  }

 private:
  std::string name_;
  Int4 parts_;
  FileTensor groups_;
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
  const std::string name = parts.name(words);
  if (const auto groups = sorted_groups(parts, int4))
    return parts.made(words, DType::f32, std::make_shared<SortedInt4Rows>(name, std::move(int4), *groups));
  const DType dtype = int4.group % 128 == 0 ? DType::int4_128 : DType::int4_32;
  return parts.made(words, dtype, std::make_shared<Int4Rows>(name, std::move(int4), dtype));
}

}  // namespace sheaf

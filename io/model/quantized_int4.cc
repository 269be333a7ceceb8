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
  static int awq_shift(int64_t row) {
    constexpr int place[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return 4 * place[row % 8];
  }

  /// Eight columns of a row from 8 `eighth` on, the first in the low bits.
  uint32_t word(int64_t row, int64_t eighth) const {
    if (kind == Kind::gptq) return word_at(words, eighth * rows + row);
    if (kind == Kind::packed_int4) return word_at(words, row * (cols / 8) + eighth);
    uint32_t all = 0;
    for (int64_t i = 0; i < 8; ++i) {
      const uint32_t of_eight_rows = word_at(words, (eighth * 8 + i) * (rows / 8) + row / 8);
      all |= (of_eight_rows >> awq_shift(row) & 15) << 4 * i;
    }
    return all;
  }
  float scale(int64_t row, int64_t its_group) const {
    return float_at(scales, kind == Kind::packed_int4 ? row * groups + its_group : its_group * rows + row);
  }
  uint32_t zero(int64_t row, int64_t its_group) const {
    if (!zeros) return 8;
    if (kind == Kind::packed_int4) return word_at(*zeros, row / 8 * groups + its_group) >> 4 * (row % 8) & 15;
    const uint32_t of_eight_rows = word_at(*zeros, its_group * (rows / 8) + row / 8);
    const int shift = kind == Kind::awq ? awq_shift(row) : static_cast<int>(4 * (row % 8));
    return (of_eight_rows >> shift & 15) + static_cast<uint32_t>(zero_offset);
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
        for (int64_t w = 0; w < block_ / 8; ++w) {
          const uint32_t word = parts_.word(first + i, b * block_ / 8 + w);
          std::memcpy(to + kScaleBytes + 4 * w, &word, sizeof word);
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
  if (!parts.has("g_idx")) return {};
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

#include <cmath>

#include "io/base/mapped_file.h"
#include "io/model/quantized_parts.h"

namespace sheaf {
namespace {

class Nf4Rows final : public StoredRows {
 public:
  Nf4Rows(std::string name, const FileTensor& pairs, std::vector<float> scales, int64_t cols)
      : name_(std::move(name)), pairs_(pairs), scales_(std::move(scales)), cols_(cols) {}

  void read(int64_t first, int64_t count, std::byte* out) const override {
    for (int64_t block = first * cols_ / kBlock; block < (first + count) * cols_ / kBlock; ++block) {
      put_scale(out, scales_[static_cast<size_t>(block)]);
      out += kScaleBytes;
      // The file has the first of two in the high bits.
      for (int64_t i = 0; i < kBlock / 2; ++i) {
        const auto pair = std::to_integer<uint32_t>(pairs_.data[block * kBlock / 2 + i]);
        *out++ = static_cast<std::byte>(pair >> 4 | (pair & 15) << 4);
      }
    }
  }
  void page_in(int64_t first, int64_t count) const override {
    page_in_bytes(pairs_.data + first * cols_ / 2, count * cols_ / 2, name_);
  }

  static constexpr int64_t kBlock = 64;

 private:
  std::string name_;
  FileTensor pairs_;
  std::vector<float> scales_;
  int64_t cols_;
};

/// The largest value of every block, which may itself be stored in 8 bits.
std::vector<float> nf4_scales(const QuantizedParts& parts, const JsonFields& state) {
  const int64_t blocks = parts.rows() * parts.cols() / Nf4Rows::kBlock;
  const FileTensor absmax = parts.shaped("weight.absmax", {"F32", "F16", "BF16", "U8"}, {blocks});
  std::vector<float> scales(static_cast<size_t>(blocks));
  if (absmax.type != "U8") {
    for (int64_t i = 0; i < blocks; ++i) scales[static_cast<size_t>(i)] = float_at(absmax, i);
    return scales;
  }
  const int64_t nested = state.integer("nested_blocksize");
  if (nested < 1) refuse("{}: \"nested_blocksize\" is {}; it must be positive", state.source(), nested);
  const auto offset = static_cast<float>(state.number("nested_offset"));
  const FileTensor outer = parts.shaped("weight.nested_absmax", {"F32"}, {(blocks + nested - 1) / nested});
  const FileTensor map = parts.shaped("weight.nested_quant_map", {"F32"}, {256});
  for (int64_t i = 0; i < blocks; ++i)
    scales[static_cast<size_t>(i)] =
        float_at(map, std::to_integer<int64_t>(absmax.data[i])) * float_at(outer, i / nested) + offset;
  return scales;
}

}  // namespace

std::optional<Matrix> take_nf4(const QuantizedParts& parts) {
  constexpr const char* about = "weight.quant_state.bitsandbytes__nf4";
  if (!parts.has(about)) return {};
  const int64_t rows = parts.rows(), cols = parts.cols();
  const FileTensor pairs = parts.shaped("weight", {"U8"}, {rows * cols / 2, 1});
  const FileTensor text = parts.raw(about, {"U8"});
  const std::string source = parts.source(about);
  if (text.size > 1 << 16) parts.bad(about, "is too long");
  const nlohmann::json object =
      parse_json({reinterpret_cast<const char*>(text.data), static_cast<size_t>(text.size)}, source);
  if (!object.is_object()) parts.bad(about, "is not a JSON object");
  const JsonFields state(object, source);
  if (state.integer("blocksize") != Nf4Rows::kBlock || cols % Nf4Rows::kBlock != 0)
    parts.bad("weight", "has {} columns in blocks of {}; sheaf reads whole blocks of 64", cols,
              state.integer("blocksize"));
  const nlohmann::json* shape = state.find("shape");
  if (shape == nullptr || *shape != nlohmann::json{rows, cols})
    parts.bad("weight", "is {} before it was packed, but the model's description needs [{}, {}]",
              shape == nullptr ? "null" : shown_json(*shape), rows, cols);
  const FileTensor map = parts.shaped("weight.quant_map", {"F32"}, {16});
  for (int64_t i = 0; i < 16; ++i)
    if (std::fabs(float_at(map, i) - kNf4.values[i]) > 1e-6f)
      parts.bad("weight.quant_map", "is not that of NF4");
  return parts.made("weight", DType::nf4,
                    std::make_shared<Nf4Rows>(parts.name("weight"), pairs, nf4_scales(parts, state), cols));
}

}  // namespace sheaf

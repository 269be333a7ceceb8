#include <cmath>

#include "io/base/mapped_file.h"
#include "io/model/quantized_parts.h"

namespace sheaf {
namespace {

constexpr int64_t kBlock = 64;

/// The largest value of every block, which may itself be stored in 8 bits.
std::vector<float> nf4_scales(const QuantizedParts& parts, const JsonFields& state) {
  const int64_t blocks = parts.rows() * parts.cols() / kBlock;
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
  if (state.integer("blocksize") != kBlock || cols % kBlock != 0)
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
  const auto read = [pairs, scales = nf4_scales(parts, state), cols](int64_t first, int64_t count,
                                                                     std::byte* out) {
    for (int64_t block = first * cols / kBlock; block < (first + count) * cols / kBlock; ++block) {
      put_scale(out, scales[static_cast<size_t>(block)]);
      out += kScaleBytes;
      // The file has the first of two in the high bits.
      for (int64_t i = 0; i < kBlock / 2; ++i) {
        const auto pair = std::to_integer<uint32_t>(pairs.data[block * kBlock / 2 + i]);
        *out++ = static_cast<std::byte>(pair >> 4 | (pair & 15) << 4);
      }
    }
  };
  return parts.made("weight", DType::nf4, pairs, cols / 2, read);
}

}  // namespace sheaf

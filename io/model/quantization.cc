#include "io/model/quantization.h"

#include <filesystem>

#include "core/base/error.h"
#include "io/base/mapped_file.h"
#include "io/model/quantized_parts.h"

namespace sheaf {
namespace {

using nlohmann::json;
using Kind = Quantization::Kind;

[[noreturn]] void not_supported(const JsonFields& fields, const char* key, const std::string& supported) {
  const json* value = fields.find(key);
  refuse("{}: \"{}\": {} is not supported (supported: {})", fields.source(), key,
         value == nullptr ? "null" : shown_json(*value), supported);
}

int64_t group_size(const JsonFields& fields, const char* key, int64_t fallback) {
  const int64_t group = fields.integer(key, fallback);
  if (group == -1) return 0;
  if (group < 32 || group % 32 != 0) not_supported(fields, key, "multiples of 32, and -1 for whole rows");
  return group;
}

void read_block(const JsonFields& fields, const char* key, Quantization& quantization) {
  const json* block = fields.find(key);
  if (block == nullptr) return;
  const auto size = [&](size_t i) -> int64_t {
    const bool fits = block->is_array() && block->size() == 2 && (*block)[i].is_number_unsigned() &&
                      (*block)[i] >= 1 && (*block)[i] <= 1 << 20;
    return fits ? (*block)[i].get<int64_t>() : 0;
  };
  quantization.block_rows = size(0);
  quantization.block_cols = size(1);
  if (quantization.block_rows == 0 || quantization.block_cols % 32 != 0 || quantization.block_cols == 0)
    not_supported(fields, key, "two sizes, the second a multiple of 32");
}

Quantization read_fp8(const JsonFields& fields) {
  if (fields.text("fmt", "e4m3") != "e4m3") not_supported(fields, "fmt", "e4m3");
  Quantization quantization{Kind::fp8};
  read_block(fields, "weight_block_size", quantization);
  return quantization;
}

Quantization read_gptq(const JsonFields& fields) {
  if (fields.integer("bits") != 4) not_supported(fields, "bits", "4");
  Quantization quantization{Kind::gptq, group_size(fields, "group_size", 128)};
  const std::string format = fields.text("checkpoint_format", "gptq");
  if (format != "gptq" && format != "gptq_v2") not_supported(fields, "checkpoint_format", "gptq, gptq_v2");
  quantization.zero_offset = format == "gptq" ? 1 : 0;
  return quantization;
}

Quantization read_awq(const JsonFields& fields) {
  if (fields.integer("bits", 4) != 4) not_supported(fields, "bits", "4");
  const std::string version = fields.text("version", "gemm");
  if (version != "gemm" && version != "GEMM") not_supported(fields, "version", "gemm");
  return {Kind::awq, group_size(fields, "group_size", 128)};
}

/// The section of one group: all of them must say the same.
const json& weights_of(const JsonFields& fields) {
  const json* groups = fields.find("config_groups");
  if (groups == nullptr || !groups->is_object() || groups->empty())
    refuse("{}: \"config_groups\" is missing", fields.source());
  const json* weights = nullptr;
  for (const auto& [name, group] : groups->items()) {
    const auto found = group.is_object() ? group.find("weights") : group.end();
    if (!group.is_object() || found == group.end() || !found->is_object())
      refuse("{}: group {} has no \"weights\"", fields.source(), shown(name));
    if (weights != nullptr && *weights != *found)
      refuse("{}: groups that store their weights in different ways are not supported", fields.source());
    weights = &*found;
  }
  return *weights;
}

Quantization read_compressed(const JsonFields& fields) {
  const JsonFields weights(weights_of(fields), fields.source() + ": weights");
  const std::string type = weights.text("type", "int");
  const int64_t bits = weights.integer("num_bits", 8);
  if (type == "float" && bits == 8) {
    Quantization quantization{Kind::fp8};
    read_block(weights, "block_structure", quantization);
    return quantization;
  }
  if (type != "int" || bits != 4)
    refuse("{}: {} bits of type {} are not supported (supported: 8 of type float, 4 of type int)",
           weights.source(), bits, shown(type));
  if (fields.text("format", "pack-quantized") != "pack-quantized")
    not_supported(fields, "format", "pack-quantized");
  return {Kind::packed_int4, group_size(weights, "group_size", -1)};
}

Quantization read_bitsandbytes(const JsonFields& fields) {
  if (fields.boolean("load_in_8bit", false)) not_supported(fields, "load_in_8bit", "false");
  if (fields.text("bnb_4bit_quant_type", "fp4") != "nf4") not_supported(fields, "bnb_4bit_quant_type", "nf4");
  return {Kind::nf4};
}

}  // namespace

double Quantization::stored_bits() const {
  if (kind == Kind::fp8) return 8.25;
  if (kind == Kind::nf4) return 4.5;
  if (kind == Kind::mxfp4) return 4.25;
  return group % 128 == 0 ? 4.25 : 5;
}

std::optional<Quantization> read_quantization(const JsonFields& config, const std::string& path) {
  const json* section = config.find("quantization_config");
  if (section == nullptr) {
    const auto beside = std::filesystem::path(path).parent_path() / "quantize_config.json";
    if (!std::filesystem::exists(beside)) return {};
    const json object = read_json_object(beside.string(), 1 << 20);
    return read_gptq(JsonFields(object, beside.string()));
  }
  if (!section->is_object()) refuse("{}: \"quantization_config\" is not an object", config.source());
  const JsonFields fields(*section, config.source() + ": quantization_config");
  const std::string method = fields.text("quant_method");
  if (method == "fp8" || method == "fbgemm_fp8") return read_fp8(fields);
  if (method == "gptq") return read_gptq(fields);
  if (method == "awq") return read_awq(fields);
  if (method == "compressed-tensors") return read_compressed(fields);
  if (method == "bitsandbytes") return read_bitsandbytes(fields);
  if (method == "mxfp4") return Quantization{Kind::mxfp4};
  not_supported(fields, "quant_method",
                "fp8, fbgemm_fp8, compressed-tensors, gptq, awq, bitsandbytes, mxfp4");
}

std::optional<Matrix> take_quantized(TensorMap& tensors, const Quantization& quantization,
                                     const std::string& module, int64_t rows, int64_t cols) {
  if (quantization.kind == Kind::mxfp4) return {};
  const QuantizedParts parts(tensors, module, rows, cols);
  if (quantization.kind == Kind::fp8) return take_fp8(parts, quantization);
  if (quantization.kind == Kind::nf4) return take_nf4(parts);
  return take_int4(parts, quantization);
}

}  // namespace sheaf

#include "io/model/quantized_weights.h"

#include "io/model/quantized_parts.h"

namespace sheaf {

std::optional<Matrix> take_quantized(TensorMap& tensors, const Quantization& quantization,
                                     const std::string& module, int64_t rows, int64_t cols) {
  const QuantizedParts parts(tensors, module, rows, cols);
  switch (quantization.kind) {
    case Quantization::Kind::fp8:
      return take_fp8(parts, quantization);
    case Quantization::Kind::gptq:
    case Quantization::Kind::awq:
    case Quantization::Kind::packed_int4:
      return take_int4(parts, quantization);
    case Quantization::Kind::nf4:
      return take_nf4(parts);
  }
  return {};
}

}  // namespace sheaf

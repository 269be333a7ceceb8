#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "io/base/json_file.h"
#include "io/model/tensor_map.h"

namespace sheaf {

/// How the linear layers of a Hugging Face checkpoint are stored in fewer bits.
struct Quantization {
  enum class Kind {
    fp8,          ///< e4m3 with a scale for the tensor, for each row or for blocks of both
    gptq,         ///< int4, eight columns in a word, words of one column group side by side
    awq,          ///< int4, eight rows in a word
    packed_int4,  ///< int4, eight columns in a word, row by row (compressed-tensors)
    nf4,          ///< bitsandbytes
    mxfp4,        ///< gpt-oss: experts only, as io/model/experts_in_turns.h says
  };
  Kind kind;
  int64_t group = 0;                       ///< int4: columns with one scale; 0: all
  int64_t zero_offset = 0;                 ///< gptq: what is added to a stored zero point
  int64_t block_rows = 0, block_cols = 0;  ///< fp8: of one scale; 0: the scale's shape says it all

  double stored_bits() const;  ///< of a weight, its scales counted
};

/// What `config`, the config.json at `path`, says in "quantization_config", or else a quantize_config.json
/// beside it, where older programs for GPTQ put it; empty where there is neither. Refuses what sheaf does not
/// read.
std::optional<Quantization> read_quantization(const JsonFields& config, const std::string& path);

/// The weight [rows, cols] of the linear layer `module` where it is stored in fewer bits; empty where it is a
/// plain tensor. Takes all tensors that belong to it.
std::optional<Matrix> take_quantized(TensorMap& tensors, const Quantization& quantization,
                                     const std::string& module, int64_t rows, int64_t cols);

}  // namespace sheaf

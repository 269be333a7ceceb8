#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/model/model.h"

namespace sheaf {

/// One of ggml's tensor types, also those sheaf does not read, so that their extent can be checked.
struct GgmlType {
  uint32_t number;
  const char* name;
  int64_t block_values;
  int64_t block_bytes;
  std::optional<DType> dtype;
};

/// Null for a number that ggml does not use (or no longer).
const GgmlType* find_ggml_type(uint32_t number);

/// "F32, F16, ...": the types sheaf reads.
std::string readable_ggml_types();

}  // namespace sheaf

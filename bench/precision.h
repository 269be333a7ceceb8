#pragma once
#include <string_view>

#include "core/model/footprint.h"

namespace sheaf {

/// "int8", "int16", or else fp32.
inline CpuPrecision precision_of(std::string_view name) {
  return name == "int8" ? CpuPrecision::int8 : name == "int16" ? CpuPrecision::int16 : CpuPrecision::f32;
}

}  // namespace sheaf

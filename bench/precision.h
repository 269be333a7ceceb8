#pragma once
#include <string_view>

#include "core/backend/footprint.h"

namespace sheaf {

/// "int8", "int16", or else fp32.
inline Precision precision_of(std::string_view name) {
  return name == "int8" ? Precision::int8 : name == "int16" ? Precision::int16 : Precision::f32;
}

}  // namespace sheaf

#pragma once
#include "core/job/words.h"
#include "core/model/footprint.h"

namespace sheaf {

/// What the CPU computes in for a job's dtype; fp32 where it leaves that open.
constexpr CpuPrecision cpu_precision(Precision dtype) {
  if (dtype == Precision::int8) return CpuPrecision::int8;
  return dtype == Precision::int16 ? CpuPrecision::int16 : CpuPrecision::f32;
}

}  // namespace sheaf

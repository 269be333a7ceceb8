#pragma once
#include "core/model/precision.h"

namespace sheaf {

/// Prints how quick a small mixture of experts is beside a dense model of the same active weights, step by
/// step in turns, so that other work on the machine slows both alike.
void measure_experts(int threads, Precision precision);

}  // namespace sheaf

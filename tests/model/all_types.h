#pragma once
#include "core/model/dtype.h"

namespace sheaf {

inline constexpr DType all_types[] = {DType::f32,   DType::f16,  DType::bf16, DType::q8_0,   DType::q4_0,
                                      DType::q4_1,  DType::q5_0, DType::q4_k, DType::q5_k,   DType::q6_k,
                                      DType::mxfp4, DType::q2_k, DType::q3_k, DType::iq4_nl, DType::iq4_xs};

}  // namespace sheaf

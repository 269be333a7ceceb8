#pragma once
#include "io/model/family.h"

namespace sheaf {

constexpr ExpertTensors kMixtralExperts{.router = "block_sparse_moe.gate",
                                        .experts = "block_sparse_moe.experts.",
                                        .gate = "w1",
                                        .up = "w3",
                                        .down = "w2"};

}  // namespace sheaf

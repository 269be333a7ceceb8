#pragma once
#include "io/model/family.h"

namespace sheaf {

/// What OLMo-2 and OLMo 3 have alike: norms after attention and MLP, and over the whole of queries and keys.
inline void describe_olmo(ModelConfig& config) {
  config.qk_norm = QkNorm::whole;
  config.norms = kNormsAfter;
}

}  // namespace sheaf

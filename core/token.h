#pragma once
#include <cstdint>
#include <vector>

namespace sheaf {

using TokenId = int32_t;
using Tokens = std::vector<TokenId>;

}  // namespace sheaf

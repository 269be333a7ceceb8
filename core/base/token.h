#pragma once
#include <cstdint>
#include <vector>

namespace sheaf {

using TokenId = int32_t;
using Tokens = std::vector<TokenId>;

inline void append(Tokens& to, const Tokens& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace sheaf

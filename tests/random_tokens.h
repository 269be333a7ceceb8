#pragma once
#include <random>

#include "core/base/token.h"

namespace sheaf::test {

inline Tokens random_tokens(std::mt19937& random, int32_t count, int32_t vocab) {
  Tokens tokens(static_cast<size_t>(count));
  for (TokenId& token : tokens) token = std::uniform_int_distribution<TokenId>(0, vocab - 1)(random);
  return tokens;
}

/// Between one and `most` of them.
inline Tokens random_part(std::mt19937& random, int32_t most, int32_t vocab) {
  return random_tokens(random, std::uniform_int_distribution<int32_t>(1, most)(random), vocab);
}

}  // namespace sheaf::test

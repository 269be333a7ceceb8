#pragma once
#include <algorithm>
#include <cstdint>

namespace sheaf {

/// The CUDA engine keeps the products of steps of fewer tokens in fp32, which saves a rounding, others in
/// bf16.
constexpr int64_t kWideTokens = 1024;

/// Tokens that a scratch of bf16 values must have room for, so that every step of at most `tokens` fits.
constexpr int64_t scratch_tokens(int64_t tokens) {
  return std::max(tokens, std::min(2 * tokens, 2 * kWideTokens));
}

}  // namespace sheaf

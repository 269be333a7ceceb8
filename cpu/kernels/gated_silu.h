#pragma once
#include "cpu/kernels/vector.h"

/// silu(gate) · up, about 16 vector operations a vector against 4 · hidden / lanes for the products that made
/// it.
namespace sheaf {
namespace {

[[gnu::always_inline]] inline Vec gated_silu_vector(Vec gate, Vec up) {
  const Vec zero{};
  return gate / (broadcast(1.0f) + exp(zero - gate)) * up;
}

void gated_silu(const float* gate, const float* up, int64_t n, float* out) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, gated_silu_vector(load(gate + i), load(up + i)));
  if (i == n) return;
  float gates[kLanes] = {};
  float ups[kLanes] = {};
  for (int64_t j = i; j < n; ++j) {
    gates[j - i] = gate[j];
    ups[j - i] = up[j];
  }
  store(gates, gated_silu_vector(load(gates), load(ups)));
  for (int64_t j = i; j < n; ++j) out[j] = gates[j - i];
}

}  // namespace
}  // namespace sheaf

#include "core/engine/routing.h"

#include <algorithm>
#include <numeric>

namespace sheaf {

void Routing::add(std::span<const int64_t> tokens_of) {
  if (tokens_of.empty()) return;
  experts = std::ssize(tokens_of);
  ++passes;
  tokens += std::accumulate(tokens_of.begin(), tokens_of.end(), int64_t{0});
  const auto [least, most] = std::ranges::minmax(tokens_of);
  least_tokens += least;
  busiest_tokens += most;
  idle += std::ranges::count(tokens_of, 0);
  for (const int64_t each : tokens_of) expert_tokens.add(each);
}

Routing& Routing::operator+=(const Routing& other) {
  experts = std::max(experts, other.experts);
  passes += other.passes;
  tokens += other.tokens;
  least_tokens += other.least_tokens;
  busiest_tokens += other.busiest_tokens;
  idle += other.idle;
  expert_tokens += other.expert_tokens;
  return *this;
}

}  // namespace sheaf

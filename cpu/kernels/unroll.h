#pragma once
#include <utility>

namespace sheaf {
namespace {

/// body(0), body(1) … with constants, so that arrays indexed by them stay in registers.
template <int Count, class Body>
[[gnu::always_inline]] inline void unroll(Body&& body) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, Count>{});
}

}  // namespace
}  // namespace sheaf

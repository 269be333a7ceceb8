#pragma once
#include <cstdint>
#include <string_view>

namespace sheaf {

/// Combines two numbers into one that looks random (splitmix64's finalizer): seeds that depend on what is
/// sampled, never on the order in which it is.
constexpr uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9e3779b97f4a7c15u * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// In [0, 1).
constexpr float uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  return static_cast<float>(mix(mix(seed, stream), index) >> 40) * 0x1p-24f;
}

}  // namespace sheaf

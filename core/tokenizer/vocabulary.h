#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/token.h"

namespace sheaf {

/// A number that differs from process to process, for hashes of what a file holds: nobody can write a file
/// whose entries all fall on one place. No result depends on it.
uint64_t hash_seed();

inline uint64_t hash_bytes(std::string_view text, uint64_t seed = 0x9E3779B97F4A7C15u) {
  uint64_t h = seed ^ text.size();
  const char* p = text.data();
  size_t left = text.size();
  const auto mix = [&h](uint64_t word) {
    h = (h ^ word) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  };
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    mix(word);
  }
  if (left > 0) {
    uint64_t word = 0;
    std::memcpy(&word, p, left);
    mix(word);
  }
  h *= 0xBF58476D1CE4E5B9u;  // so that the last bytes reach the low bits
  return h ^ h >> 32;
}

/// The bytes of every token, and the token of some bytes.
class Vocabulary {
 public:
  /// More tokens than any model has; a file that asks for more is refused before anything is allocated.
  static constexpr int64_t most_tokens = 4'000'000;

  /// Makes room for ids below `count`; those not set are holes.
  void resize(size_t count);
  /// Gives `id` its bytes. Where `findable`, find_id() gives `id` for them, unless an earlier token has them
  /// already.
  void set(TokenId id, std::string bytes, bool findable);

  /// The token of some bytes, or -1.
  TokenId find_id(std::string_view bytes) const;

  int32_t size() const { return static_cast<int32_t>(bytes_.size()); }
  bool holds(TokenId id) const { return id >= 0 && id < size(); }
  const std::string& bytes(TokenId id) const { return bytes_[static_cast<size_t>(id)]; }

 private:
  void grow(size_t slots);
  void insert(TokenId id);

  std::vector<std::string> bytes_;
  std::vector<TokenId> slots_;  // open addressing, -1: free
  size_t used_ = 0;
  uint64_t seed_ = hash_seed();
};

}  // namespace sheaf

#pragma once
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/io/temp_folder.h"

namespace sheaf {

/// Changes a text at a few random places: bits, bytes, cuts, repeats, and words that parsers find
/// interesting.
inline std::string mutate(std::string text, std::mt19937_64& random,
                          const std::vector<std::string_view>& words) {
  const auto below = [&](size_t n) { return n ? static_cast<size_t>(random() % n) : 0; };
  for (size_t changes = 1 + below(4); changes > 0; --changes) {
    const size_t at = below(text.size());
    switch (below(7)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        if (!text.empty()) text[at] = static_cast<char>(below(256));
        break;
      case 2:
        text.erase(at, below(1 + text.size() / 4));
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), below(64)));
        break;
      case 4:
        text.resize(at);
        break;
      default:
        if (!words.empty()) text.insert(at, words[below(words.size())]);
    }
  }
  return text;
}

/// Calls `round(random)` until the time of a fuzz test is over; the seed is fixed.
template <class Round>
int64_t fuzz(Round&& round) {
  std::mt19937_64 random(20240607);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(fuzz_seconds());
  int64_t rounds = 0;
  for (; std::chrono::steady_clock::now() < end; ++rounds) round(random);
  return rounds;
}

}  // namespace sheaf

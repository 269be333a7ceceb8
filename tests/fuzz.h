#pragma once
#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "tests/files.h"

namespace sheaf {

/// Keeps the text that a target is about to read in the file that SHEAF_FUZZ_INPUT names, so that a crash
/// leaves it behind.
inline const std::string& keep_input(const std::string& text) {
  static const char* const path = std::getenv("SHEAF_FUZZ_INPUT");
  if (path) std::ofstream(path, std::ios::binary) << text;
  return text;
}

/// Texts that were trouble once: the files of tests/findings/TARGET.
inline std::vector<std::string> past_findings(const std::string& target) {
  std::vector<std::string> texts;
  const std::filesystem::path folder = std::filesystem::path("tests/findings") / target;
  if (!std::filesystem::is_directory(folder)) return texts;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    texts.push_back(read_text(entry.path()));
  return texts;
}

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
  return keep_input(text);
}

/// How long a fuzz test runs.
inline double fuzz_seconds() {
  const char* const text = std::getenv("SHEAF_FUZZ_SECONDS");
  return text ? std::atof(text) : 1.0;
}

/// Calls `round(random)` until the time of a fuzz test is over, and at least two hundred times: what a test
/// asks of its texts must not depend on how busy the machine is. SHEAF_FUZZ_SEED changes where it starts.
template <class Round>
int64_t fuzz(Round&& round) {
  const char* const seed = std::getenv("SHEAF_FUZZ_SEED");
  std::mt19937_64 random(seed ? std::strtoull(seed, nullptr, 10) : 20240607);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(fuzz_seconds());
  int64_t rounds = 0;
  for (; rounds < 200 || std::chrono::steady_clock::now() < end; ++rounds) round(random);
  return rounds;
}

/// What a target made of its texts.
struct FuzzCount {
  int64_t read = 0, refused = 0;
};

/// Gives `read` what was found before, then changed seeds until the time is over. It may take a text or
/// refuse it as wrong input; anything else fails the test, or the sanitizers under it.
template <class Read>
FuzzCount fuzz_target(const std::string& target, const std::vector<std::string>& seeds,
                      const std::vector<std::string_view>& words, Read&& read) {
  FuzzCount count;
  const auto take = [&](const std::string& text) {
    try {
      read(text);
      ++count.read;
    } catch (const Error& error) {
      ++count.refused;
      EXPECT_EQ(error.fault(), Fault::input) << error.what();
    }
  };
  for (const std::string& text : past_findings(target)) take(keep_input(text));
  for (const std::string& text : seeds) {
    const int64_t before = count.read;
    take(keep_input(text));
    EXPECT_EQ(count.read, before + 1) << "a seed was refused: " << text.substr(0, 200);
  }
  const auto change = [&](std::mt19937_64& random) {
    take(mutate(seeds[random() % seeds.size()], random, words));
  };
  fuzz(change);
  // A strict reader refuses nearly every changed text, and a busy machine tries few of them.
  const auto seen = static_cast<int64_t>(seeds.size());
  std::mt19937_64 more(1);
  for (int i = 0; i < 100'000 && count.read <= seen; ++i) change(more);
  EXPECT_GT(count.read, seen) << "nothing was tried behind the reader";
  EXPECT_GT(count.refused, 0);
  return count;
}

/// Words that readers of JSON find interesting.
inline const std::vector<std::string_view> kJsonWords = {"{",
                                                         "}",
                                                         "[",
                                                         "]",
                                                         ",",
                                                         ":",
                                                         "\"",
                                                         "\\u",
                                                         "\\ud800",
                                                         "null",
                                                         "true",
                                                         "1e999",
                                                         "-1",
                                                         "0",
                                                         "0.5",
                                                         "99999999999999999999",
                                                         "9223372036854775807",
                                                         "\xff",
                                                         "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
                                                         "{\"a\":",
                                                         "\n"};

}  // namespace sheaf

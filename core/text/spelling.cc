#include "core/text/spelling.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>

#include "core/text/utf8.h"

namespace sheaf {
namespace {

constexpr size_t kLongestWord = 64;     // longer names get no suggestion: the distance costs their product
constexpr size_t kMostCells = 1 << 18;  // of all distances together: a row of a corpus may ask for this
constexpr size_t kMostListed = 12;

/// Edits that turn `a` into `b`, a swap of neighbours counting as one; both in lower case and at most
/// kLongestWord long.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<std::array<uint8_t, kLongestWord + 1>, 3> rows;
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = static_cast<uint8_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    const auto &before = rows[(i + 1) % 3], &previous = rows[(i + 2) % 3];
    auto& current = rows[i % 3];
    current[0] = static_cast<uint8_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int least = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      least = std::min(least, 1 + std::min(previous[j], current[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        least = std::min(least, before[j - 2] + 1);
      current[j] = static_cast<uint8_t>(least);
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string nearest_spelling(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty() || word.size() > kLongestWord) return {};
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  const std::string lowered = small_letters(std::string(word));
  size_t cells = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.empty() || candidate.size() > kLongestWord) continue;
    const size_t least = std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    if (least > best_distance) continue;
    cells += word.size() * candidate.size();
    if (cells > kMostCells) break;
    const size_t distance = edit_distance(lowered, small_letters(candidate));
    // Of two that are as near, people mean the one that begins alike.
    const bool begins = small_letter(candidate[0]) == lowered[0];
    const bool nearer = distance < best_distance || (best && distance == best_distance && begins &&
                                                     small_letter((*best)[0]) != lowered[0]);
    if (nearer && distance < candidate.size()) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best ? *best : std::string();
}

std::string suggest_spelling(std::string_view word, std::span<const std::string> candidates) {
  if (const std::string near = nearest_spelling(word, candidates); !near.empty())
    return fmt::format("; did you mean \"{}\"?", near);
  if (candidates.empty()) return {};
  std::vector<std::string> words;  // each once
  for (const std::string& candidate : candidates)
    if (std::ranges::find(words, candidate) == words.end()) words.push_back(candidate);
  std::string list;
  for (size_t i = 0; i < std::min(words.size(), kMostListed); ++i)
    list += (i ? ", " : "") + shorten_text(words[i], kLongestWord);
  if (words.size() > kMostListed) list += fmt::format(" and {} more", words.size() - kMostListed);
  return (words.size() == 1 ? "; use " : "; use one of ") + list;
}

std::string plural(std::string_view noun, int64_t count) {
  return std::string(noun) + (count == 1 ? "" : "s");
}

std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}", count, plural(noun, count));
}

std::string shorten_text(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  return std::string(text.substr(0, character_before(text, bytes + 1))) + "…";
}

}  // namespace sheaf

#include "io/spelling.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <vector>

namespace sheaf {
namespace {

constexpr size_t kLongestWord = 64;     // longer names get no suggestion: the distance costs their product
constexpr size_t kMostCells = 1 << 18;  // of all distances together: a row of a corpus may ask for this
constexpr size_t kMostListed = 12;

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

/// Edits that turn `a` into `b`, a swap of neighbours counting as one.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string nearest_spelling(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty() || word.size() > kLongestWord) return {};
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  size_t cells = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.empty() || candidate.size() > kLongestWord) continue;
    const size_t least = std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    if (least >= best_distance) continue;
    if ((cells += word.size() * candidate.size()) > kMostCells) break;
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
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
  std::string list;
  for (size_t i = 0; i < std::min(candidates.size(), kMostListed); ++i)
    list += (i ? ", " : "") + shorten_text(candidates[i], kLongestWord);
  if (candidates.size() > kMostListed) list += fmt::format(" and {} more", candidates.size() - kMostListed);
  return "; known are " + list;
}

std::string shorten_text(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace sheaf

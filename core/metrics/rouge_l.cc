// ROUGE-L as the Python package rouge-score computes it (rouge_scorer.score_multi of "rougeL").
#include "core/metrics/rouge_l.h"

#include <bit>

#include "core/metrics/metrics.h"
#include "core/metrics/python_text.h"

namespace sheaf {
namespace {

using Tokens = std::vector<std::string>;

/// Runs of ASCII letters and digits in lower case.
Tokens rouge_tokens(std::string_view text, bool stem) {
  const std::string low = python::lower(text);
  Tokens tokens;
  std::string word;
  const auto close = [&] {
    if (word.empty()) return;
    if (stem && word.size() > 3) word = porter_stem(std::move(word));
    tokens.push_back(std::move(word));
    word.clear();
  };
  for (const char c : low) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      word += c;
    else
      close();
  }
  close();
  return tokens;
}

template <bool stem>
void score_rouge(const MetricItem& item, std::span<double> scores) {
  if (!item.prediction || item.prediction->empty()) return;
  const Tokens predicted = rouge_tokens(item.prediction->front(), stem);
  const CommonSubsequence with_predicted(predicted);
  for (const auto& reference : item.references) {
    const Tokens wanted = rouge_tokens(reference.front(), stem);
    if (predicted.empty() || wanted.empty()) continue;
    const auto common = static_cast<double>(with_predicted.length_with(wanted));
    const double precision = common / static_cast<double>(predicted.size());
    const double recall = common / static_cast<double>(wanted.size());
    const double f1 = precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
    if (f1 <= scores[0]) continue;  // the first of equals counts
    scores[0] = f1;
    scores[1] = precision;
    scores[2] = recall;
  }
}

constexpr Metric::ValueName rouge_values[] = {
    {"rougeL"}, {"rougeL_precision"}, {"rougeL_recall"}, {"total", true}};

}  // namespace

CommonSubsequence::CommonSubsequence(const std::vector<std::string>& words) : count_(words.size()) {
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<Places>& places = places_[words[i]];
    if (places.empty() || places.back().word != i / 64) places.push_back({i / 64, 0});
    places.back().where |= uint64_t{1} << i % 64;
  }
}

size_t CommonSubsequence::length_with(const std::vector<std::string>& others) const {
  // A zero at i: the subsequence is one longer with word i than without it.
  std::vector<uint64_t> rises((count_ + 63) / 64, ~uint64_t{0});
  for (const std::string& other : others) {
    const auto found = places_.find(other);
    if (found == places_.end()) continue;
    // rises = (rises + matches) | (rises - matches), as one long number.
    uint64_t carry = 0;
    size_t at = 0;  // where the carry goes
    const auto carry_on = [&](size_t end) {
      for (; carry != 0 && at < end; ++at) {
        const uint64_t before = rises[at];
        rises[at] = before | (before + 1);
        carry = before == ~uint64_t{0};
      }
    };
    for (const Places& places : found->second) {
      carry_on(places.word);
      at = places.word;
      const uint64_t before = rises[at], matches = before & places.where;
      const uint64_t sum = before + matches;
      rises[at] = (sum + carry) | (before - matches);
      carry = sum < before || sum + carry < sum;
      ++at;
    }
    carry_on(rises.size());
  }
  size_t zeros = 0;
  for (const uint64_t word : rises) zeros += static_cast<size_t>(std::popcount(~word));
  return zeros;
}

Metric rouge_l_metric() {
  return mean_metric<score_rouge<false>>(
      "rouge-l", "ROUGE-L as the package rouge-score: F of the longest common subsequence of words",
      rouge_values, -1);
}

Metric rouge_l_stem_metric() {
  return mean_metric<score_rouge<true>>("rouge-l-stem", "the same on Porter stems (use_stemmer=True)",
                                        rouge_values, -1);
}

}  // namespace sheaf

// ROUGE-L as the Python package rouge-score computes it (rouge_scorer.score_multi of "rougeL").
#include <algorithm>

#include "core/metrics/common_subsequence.h"
#include "core/metrics/metrics.h"
#include "core/metrics/porter_stem.h"
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

void measure_rouge(const MetricItem& item, std::span<double> terms, std::span<double> scores, bool stem) {
  terms[3] = 1;
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
  std::copy_n(scores.begin(), 3, terms.begin());
}

void measure_plain(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  measure_rouge(item, terms, scores, false);
}

void measure_stemmed(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  measure_rouge(item, terms, scores, true);
}

void evaluate_rouge(std::span<const double> sums, std::span<double> values) {
  for (size_t i = 0; i < 3; ++i) values[i] = sums[i] / sums[3];
  values[3] = sums[3];
}

constexpr std::string_view scores[] = {"rougeL", "rougeL_precision", "rougeL_recall"};
constexpr Metric::ValueName values[] = {{"rougeL"}, {"rougeL_precision"}, {"rougeL_recall"}, {"total", true}};

}  // namespace

Metric rouge_l_metric() {
  return {.name = "rouge-l",
          .about = "ROUGE-L as the package rouge-score: F of the longest common subsequence of words",
          .values = values,
          .scores = scores,
          .terms = 4,
          .measure = measure_plain,
          .evaluate = evaluate_rouge};
}

Metric rouge_l_stem_metric() {
  Metric metric = rouge_l_metric();
  metric.name = "rouge-l-stem";
  metric.about = "the same on Porter stems (use_stemmer=True)";
  metric.measure = measure_stemmed;
  return metric;
}

}  // namespace sheaf

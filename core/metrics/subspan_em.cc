// Answers to LOFT's questions about documents as its evaluation/rag.py counts them: an answer is right that
// contains an accepted one, both in SQuAD's form after Unicode's form D.
#include <algorithm>

#include "core/metrics/answer_tokens.h"
#include "core/metrics/metrics.h"
#include "core/text/nfc.h"
#include "core/text/pattern_set.h"

namespace sheaf {
namespace {

using Tokens = std::vector<std::string>;

Tokens loft_tokens(const std::string& text) {
  return answer_tokens(normalize_nfd(text));
}

bool contains_any(std::string_view text, const std::vector<std::string>& wanted) {
  PatternSet patterns;
  for (const std::string& one : wanted) {
    if (one.empty()) return true;
    if (one.size() <= text.size()) patterns.add(one);
  }
  patterns.link();
  std::vector<PatternSet::Match> found;
  patterns.search(text, 0, text.size(), text.size(), found);
  return !found.empty();
}

void measure_loft(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  terms[3] = 1;
  if (!item.prediction) return;
  if (item.prediction->empty()) {
    if (item.references.empty()) std::fill(scores.begin(), scores.end(), 1.0);
  } else {
    const Tokens predicted = loft_tokens(item.prediction->front());
    const std::string text = joined_tokens(predicted);
    // The original takes its own normal form apart once more.
    const TokenBag bag(loft_tokens(text));
    std::vector<std::string> texts;
    for (const auto& reference : item.references) {
      const Tokens wanted = loft_tokens(reference.front());
      texts.push_back(joined_tokens(wanted));
      scores[1] = std::max(scores[1], predicted == wanted ? 1.0 : 0.0);
      scores[2] = std::max(scores[2], bag.f1(TokenBag(loft_tokens(texts.back()))));
    }
    scores[0] = contains_any(text, texts) ? 1 : 0;
  }
  std::copy_n(scores.begin(), 3, terms.begin());
}

void evaluate_loft(std::span<const double> sums, std::span<double> values) {
  for (size_t i = 0; i < 3; ++i) values[i] = sums[i] / sums[3];
  values[3] = sums[3];
}

constexpr std::string_view scores[] = {"subspan_em", "em", "f1"};
constexpr Metric::ValueName values[] = {{"subspan_em"}, {"em"}, {"f1"}, {"total", true}};

}  // namespace

Metric subspan_em_metric() {
  return {.name = "subspan-em",
          .about = "LOFT's Subspan Exact Match: the share of answers that contain an accepted answer",
          .values = values,
          .scores = scores,
          .main = 0,
          .right = 0,
          .terms = 4,
          .measure = measure_loft,
          .evaluate = evaluate_loft};
}

}  // namespace sheaf

// Metrics that compare answers by the words of SQuAD's script. Each counts as its official script does.
#include <fmt/ranges.h>

#include "core/metrics/answer_tokens.h"
#include "core/metrics/metrics.h"
#include "core/text/pattern_set.h"
#include "core/text/unicode.h"

namespace sheaf {
namespace {

using Tokens = std::vector<std::string>;

/// A prediction beside one accepted answer.
struct Compared {
  const Tokens &predicted, &wanted;
  bool same;
  TokenOverlap overlap;

  /// SQuAD 2.0's: where one of the two has no words, both must have none.
  double f1_or_same() const { return predicted.empty() || wanted.empty() ? same : overlap.f1; }
};

Tokens predicted_tokens(const MetricItem& item) {
  return item.prediction->empty() ? Tokens{} : answer_tokens(item.prediction->front());
}

/// Calls `use` with the prediction, where there is one, beside each reference.
template <class Use>
void compare_words(const MetricItem& item, Use use) {
  if (!item.prediction) return;
  const Tokens predicted = predicted_tokens(item);
  const TokenBag bag(predicted);
  for (const auto& reference : item.references) {
    const Tokens wanted = answer_tokens(reference.front());
    use(Compared{predicted, wanted, predicted == wanted, bag.overlap(TokenBag(wanted))});
  }
}

void keep_larger(double& score, double other) {
  score = std::max(score, other);
}

enum Term { has_exact, has_f1, has_total, no_exact, no_f1, no_total };

// SQuAD 2.0: evaluate-v2.0.py. Where no reference has words, an answer without words is right.
void measure_squad2(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  bool has_words = false;
  compare_words(item, [&](const Compared& both) {
    if (both.wanted.empty()) return;
    has_words = true;
    keep_larger(scores[0], both.same);
    keep_larger(scores[1], both.overlap.f1);
  });
  if (!has_words) scores[0] = scores[1] = item.prediction && predicted_tokens(item).empty();
  // The split goes by whether there are answers at all, even if nothing is left of them.
  const size_t split = item.references.empty() ? no_exact : has_exact;
  terms[split] = scores[0];
  terms[split + 1] = scores[1];
  terms[split + 2] = 1;
}

void evaluate_squad2(std::span<const double> sums, std::span<double> values) {
  const double total = sums[has_total] + sums[no_total];
  values[0] = 100 * (sums[has_exact] + sums[no_exact]) / total;
  values[1] = 100 * (sums[has_f1] + sums[no_f1]) / total;
  values[2] = total;
  for (size_t split = 0; split < 2; ++split) {
    evaluate_mean<100>(sums.subspan(3 * split, 3), values.subspan(3 + 3 * split, 3));
    if (values[5 + 3 * split] == 0) values[5 + 3 * split] = NAN;  // a split that is empty has no values
  }
}

// SQuAD 1.1: evaluate-v1.1.py.
void score_squad1(const MetricItem& item, std::span<double> scores) {
  compare_words(item, [&](const Compared& both) {
    keep_larger(scores[0], both.same);
    keep_larger(scores[1], both.overlap.f1);
  });
}

bool is_verdict(const Tokens& tokens) {
  return tokens.size() == 1 && (tokens[0] == "yes" || tokens[0] == "no" || tokens[0] == "noanswer");
}

// HotpotQA: hotpot_evaluate_v1.py. "yes", "no" and "noanswer" are worth nothing beside anything else.
void score_hotpotqa(const MetricItem& item, std::span<double> scores) {
  compare_words(item, [&](const Compared& both) {
    keep_larger(scores[0], both.same);
    if (!both.same && (is_verdict(both.predicted) || is_verdict(both.wanted))) return;
    if (both.overlap.f1 <= scores[1]) return;
    scores[1] = both.overlap.f1;
    scores[2] = both.overlap.precision;
    scores[3] = both.overlap.recall;
  });
}

// MuSiQue: evaluate_v1.0.py. A question that cannot be answered does not count.
void score_musique(const MetricItem& item, std::span<double> scores) {
  if (item.references.empty()) std::ranges::fill(scores, NAN);
  compare_words(item, [&](const Compared& both) {
    keep_larger(scores[0], both.f1_or_same());
    keep_larger(scores[1], both.same);
  });
}

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

// LOFT's questions about documents: evaluation/rag.py. An answer is right that contains an accepted one, both
// in SQuAD's form after Unicode's form D.
void score_loft(const MetricItem& item, std::span<double> scores) {
  if (!item.prediction) return;
  if (item.prediction->empty()) {
    if (item.references.empty()) std::ranges::fill(scores, 1.0);
    return;
  }
  const Tokens predicted = loft_tokens(item.prediction->front());
  const std::string text = fmt::format("{}", fmt::join(predicted, " "));
  // The original takes its own normal form apart once more.
  const TokenBag bag(loft_tokens(text));
  std::vector<std::string> texts;
  for (const auto& reference : item.references) {
    const Tokens wanted = loft_tokens(reference.front());
    texts.push_back(fmt::format("{}", fmt::join(wanted, " ")));
    keep_larger(scores[1], predicted == wanted);
    keep_larger(scores[2], bag.f1(TokenBag(loft_tokens(texts.back()))));
  }
  scores[0] = contains_any(text, texts);
}

constexpr Metric::ValueName squad_scores[] = {{"exact"}, {"f1"}};
constexpr Metric::ValueName squad_values[] = {{"exact"},
                                              {"f1"},
                                              {"total", true},
                                              {"HasAns_exact", false, true},
                                              {"HasAns_f1", false, true},
                                              {"HasAns_total", true, true},
                                              {"NoAns_exact", false, true},
                                              {"NoAns_f1", false, true},
                                              {"NoAns_total", true, true}};
constexpr Metric::ValueName squad1_values[] = {{"exact_match"}, {"f1"}, {"total", true}};
constexpr Metric::ValueName hotpotqa_values[] = {{"em"}, {"f1"}, {"prec"}, {"recall"}, {"total", true}};
constexpr Metric::ValueName musique_values[] = {{"answer_f1"}, {"answer_em"}, {"total", true}};
constexpr Metric::ValueName loft_values[] = {{"subspan_em"}, {"em"}, {"f1"}, {"total", true}};

}  // namespace

Metric squad_metric() {
  return {.name = "squad",
          .about = "SQuAD 2.0: exact match and F1 of words, with questions that have no answer",
          .values = squad_values,
          .scores = squad_scores,
          .right = 0,
          .terms = 6,
          .best = 100,
          .measure = measure_squad2,
          .evaluate = evaluate_squad2};
}

Metric squad1_metric() {
  return mean_metric<score_squad1, 100>("squad1", "SQuAD 1.1: exact match and F1 of words", squad1_values, 0);
}

Metric hotpotqa_metric() {
  return mean_metric<score_hotpotqa>(
      "hotpotqa", "HotpotQA: exact match and F1 of words of the answer, where yes and no are all or nothing",
      hotpotqa_values, 0);
}

Metric musique_metric() {
  return mean_metric<score_musique>(
      "musique", "MuSiQue: F1 of words and exact match of the answer, the best of its aliases",
      musique_values, 1);
}

Metric subspan_em_metric() {
  Metric metric = mean_metric<score_loft>(
      "subspan-em", "LOFT's Subspan Exact Match: the share of answers that contain an accepted answer",
      loft_values, 0);
  metric.main = 0;
  return metric;
}

}  // namespace sheaf

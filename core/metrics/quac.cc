// QuAC as its official scorer.py counts: F1 against all but one reference, averaged over which one is left
// out, so that it compares with the F1 that people have against each other; questions on which people agree
// less than 0.4 do not count.
#include <algorithm>

#include "core/base/error.h"
#include "core/metrics/answer_tokens.h"
#include "core/metrics/metrics.h"

namespace sheaf {
namespace {

constexpr std::string_view kCannot = "CANNOTANSWER";
constexpr double kLeastAgreement = 0.4;

constexpr size_t kMostReferences = 100;  // each is compared with each

struct Reference {
  bool cannot = false;
  TokenBag tokens{{}};
};

/// Either nobody could answer, where that is half of them or more, or those who could.
std::vector<Reference> voted(const MetricItem& item) {
  if (item.references.size() > kMostReferences)
    refuse("question {} has {} references; the metric quac takes at most {}", item.id, item.references.size(),
           kMostReferences);
  std::vector<Reference> spans;
  for (const auto& reference : item.references)
    if (reference.front() != kCannot) spans.push_back({false, TokenBag(answer_tokens(reference.front()))});
  if (item.references.size() >= 2 * spans.size()) return {Reference{.cannot = true}};
  return spans;
}

/// The mean over `count` references, each left out in turn, of the best f1(left out, other) of the others.
template <class F1>
double mean_best(size_t count, F1 f1) {
  double sum = 0;
  for (size_t out = 0; out < count; ++out) {
    double best = 0;
    for (size_t i = 0; i < count; ++i)
      if (i != out) best = std::max(best, f1(out, i));
    sum += best;
  }
  return sum / static_cast<double>(count);
}

double human_f1(const std::vector<Reference>& references) {
  if (references.size() == 1) return 1;
  return mean_best(references.size(),
                   [&](size_t out, size_t i) { return references[out].tokens.f1(references[i].tokens); });
}

double model_f1(const Reference& predicted, const std::vector<Reference>& references) {
  std::vector<double> f1s;
  for (const Reference& reference : references)
    f1s.push_back(reference.cannot ? predicted.cannot : predicted.tokens.f1(reference.tokens));
  return f1s.size() == 1 ? f1s[0] : mean_best(f1s.size(), [&](size_t, size_t i) { return f1s[i]; });
}

enum Term {
  all_f1,
  all_total,
  f1_sum,
  total,
  as_good,
  cannot_f1,
  cannot_total,
  worse,
  dialogs_as_good,
  dialogs,
  human_sum,
  human_total,
  yesno_right,
  yesno_total,
  followup_right,
  followup_total,
  kTerms
};

/// What nobody predicted is not in the sums.
void count_act(const std::optional<bool>& right, double& sum, double& count) {
  if (!right) return;
  sum = *right ? 1 : 0;
  count = 1;
}

void measure_quac(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  const std::vector<Reference> references = voted(item);
  const double human = human_f1(references);
  double f1 = 0;
  if (item.prediction) {
    const std::string_view text = item.prediction->empty() ? kCannot : item.prediction->front();
    f1 = model_f1({text == kCannot, TokenBag(answer_tokens(text))}, references);
  }
  scores[0] = f1;
  scores[1] = human;
  terms[all_f1] = f1;
  terms[all_total] = 1;
  if (human >= kLeastAgreement) {
    terms[human_sum] = human;
    terms[human_total] = 1;
  }
  // A question without a prediction counts even where people do not agree.
  if (item.prediction && human < kLeastAgreement) return;
  const bool good = item.prediction && f1 >= human;
  terms[f1_sum] = f1;
  terms[total] = 1;
  terms[as_good] = good ? 1 : 0;
  terms[worse] = good ? 0 : 1;
  count_act(item.yesno, terms[yesno_right], terms[yesno_total]);
  count_act(item.followup, terms[followup_right], terms[followup_total]);
  if (references[0].cannot) {
    terms[cannot_f1] = f1;
    terms[cannot_total] = 1;
  }
}

void close_dialog(std::span<double> terms) {
  terms[dialogs] = 1;
  terms[dialogs_as_good] = terms[worse] == 0 ? 1 : 0;
}

void evaluate_quac(std::span<const double> sums, std::span<double> values) {
  constexpr std::pair<Term, Term> shares[] = {{f1_sum, total},
                                              {as_good, total},
                                              {dialogs_as_good, dialogs},
                                              {all_f1, all_total},
                                              {cannot_f1, cannot_total},
                                              {yesno_right, yesno_total},
                                              {followup_right, followup_total},
                                              {human_sum, human_total}};
  for (size_t v = 0; v < std::size(shares); ++v)
    values[v] = 100 * sums[shares[v].first] / sums[shares[v].second];
  values[8] = sums[all_total];
  values[9] = sums[dialogs];
}

constexpr Metric::ValueName scores[] = {{"f1"}, {"human_f1"}};
constexpr Metric::ValueName values[] = {{"f1"},
                                        {"HEQ"},
                                        {"DHEQ"},
                                        {"unfiltered_f1"},
                                        {"unanswerable_acc"},
                                        {"yes/no", false, true},
                                        {"followup", false, true},
                                        {"human_f1"},
                                        {"total", true},
                                        {"dialogs", true}};

}  // namespace

Metric quac_metric() {
  return {.name = "quac",
          .about = "QuAC: F1 of words, compared with that of people (HEQ by question, DHEQ by dialog)",
          .values = values,
          .scores = scores,
          .terms = kTerms,
          .best = 100,
          .measure = measure_quac,
          .close_unit = close_dialog,
          .evaluate = evaluate_quac};
}

}  // namespace sheaf

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

double human_f1(const std::vector<Reference>& references) {
  if (references.size() == 1) return 1;
  double sum = 0;
  for (size_t i = 0; i < references.size(); ++i) {
    double best = 0;
    for (size_t j = 0; j < references.size(); ++j)
      if (i != j) best = std::max(best, references[i].tokens.f1(references[j].tokens));
    sum += best;
  }
  return sum / static_cast<double>(references.size());
}

double model_f1(const Reference& predicted, const std::vector<Reference>& references) {
  std::vector<double> f1s;
  for (const Reference& reference : references) {
    if (reference.cannot)
      f1s.push_back(predicted.cannot ? 1 : 0);
    else
      f1s.push_back(predicted.tokens.f1(reference.tokens));
  }
  if (f1s.size() == 1) return f1s[0];
  double sum = 0;
  for (size_t out = 0; out < f1s.size(); ++out) {
    double best = 0;
    for (size_t i = 0; i < f1s.size(); ++i)
      if (i != out) best = std::max(best, f1s[i]);
    sum += best;
  }
  return sum / static_cast<double>(f1s.size());
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
  values[0] = 100 * sums[f1_sum] / sums[total];
  values[1] = 100 * sums[as_good] / sums[total];
  values[2] = 100 * sums[dialogs_as_good] / sums[dialogs];
  values[3] = 100 * sums[all_f1] / sums[all_total];
  values[4] = 100 * sums[cannot_f1] / sums[cannot_total];
  values[5] = 100 * sums[yesno_right] / sums[yesno_total];
  values[6] = 100 * sums[followup_right] / sums[followup_total];
  values[7] = 100 * sums[human_sum] / sums[human_total];
  values[8] = sums[all_total];
  values[9] = sums[dialogs];
}

constexpr std::string_view scores[] = {"f1", "human_f1"};
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

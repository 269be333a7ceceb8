// Attribute values as ExtractGPT counts them. A value is one of five: NN rightly absent, NV invented, VN
// missed, VC right, VW wrong.
#include "core/metrics/attributes.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "core/metrics/metrics.h"
#include "core/metrics/python_text.h"

namespace sheaf {
namespace {

enum Term { nn, nv, vn, vc, vw, wanted, given, found };

constexpr std::string_view kAbsent = "n/a";

Term judge(const MetricItem& item) {
  const bool answered = item.prediction && gives_value(*item.prediction), wanted = has_value(item.references);
  if (!answered) return wanted ? vn : nn;
  if (!wanted) return nv;
  return agrees(*item.prediction, item.references) ? vc : vw;
}

void measure_attribute(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  if (item.entries) {
    const EntryCounts& counts = *item.entries;
    terms[nv] = static_cast<double>(counts.invented);
    terms[wanted] = static_cast<double>(counts.wanted);
    terms[given] = static_cast<double>(counts.given);
    terms[found] = static_cast<double>(counts.found);
    const bool all = counts.found == counts.wanted && counts.found == counts.given && counts.invented == 0;
    scores[0] = all ? 1 : 0;
    return;
  }
  const Term term = judge(item);
  terms[term] = 1;
  scores[0] = term == vc || term == nn ? 1 : 0;
}

double percent(double part, double whole) {
  return whole > 0 ? python::round_to_cents(part / whole * 100) : 0;
}

/// Precision, recall and F1, rounded as the original rounds, F1 from the rounded ones.
void set_scores(double precision, double recall, std::span<double> values) {
  values[0] = precision;
  values[1] = recall;
  values[2] =
      precision + recall > 0 ? python::round_to_cents(2 * precision * recall / (precision + recall)) : 0;
}

void evaluate_attributes(std::span<const double> sums, std::span<double> values) {
  set_scores(percent(sums[vc], sums[nv] + sums[vc] + sums[vw]),
             percent(sums[vc], sums[vn] + sums[vc] + sums[vw]), values);
  std::copy_n(sums.begin(), 5, values.begin() + 3);
  const std::span<double> entries = values.subspan(8);
  if (sums[wanted] + sums[given] == 0) {
    std::ranges::fill(entries, NAN);
    return;
  }
  set_scores(percent(sums[found], sums[given]), percent(sums[found], sums[wanted]), entries);
  std::copy_n(sums.begin() + wanted, 3, entries.begin() + 3);
}

constexpr Metric::ValueName scores[] = {{"right"}};
constexpr Metric::ValueName values[] = {
    {"micro_precision"},
    {"micro_recall"},
    {"micro_f1"},
    {"nn", true, false, "no value in gold, none in the answer: right"},
    {"nv", true, false, "no value in gold, but one in the answer: invented"},
    {"vn", true, false, "a value in gold, none in the answer: missed"},
    {"vc", true, false, "a value in gold, the same in the answer: correct"},
    {"vw", true, false, "a value in gold, another in the answer: wrong"},
    {"entry_precision", false, true},
    {"entry_recall", false, true},
    {"entry_f1", false, true},
    {"entries", true, true, "entries of lists of objects in gold"},
    {"entries_given", true, true, "entries in the answers"},
    {"entries_found", true, true, "entries of which at least half of the values agree"}};

}  // namespace

bool gives_value(const std::vector<std::string>& prediction) {
  if (prediction.empty()) return false;
  const bool word_for_none = prediction.front() == kAbsent || prediction.front() == "None";
  return prediction.size() > 1 || !word_for_none;
}

bool has_value(const std::vector<std::vector<std::string>>& references) {
  return !references.empty() && references.front().front() != kAbsent;
}

bool agrees(const std::vector<std::string>& prediction,
            const std::vector<std::vector<std::string>>& references) {
  // A list, which ExtractGPT does not know, is right where every part of it is.
  std::unordered_set<std::string_view> accepted;
  for (const auto& reference : references)
    if (reference.front() != kAbsent) accepted.insert(python::strip(reference.front()));
  return std::ranges::all_of(prediction, [&](const std::string& value) { return accepted.contains(value); });
}

Metric attributes_metric() {
  return {
      .name = "attributes",
      .about =
          "attribute values as ExtractGPT (OA-Mine, AE-110k): right, wrong, missed, invented, rightly absent",
      .values = values,
      .scores = scores,
      .right = 0,
      .terms = 8,
      .best = 100,
      .measure = measure_attribute,
      .evaluate = evaluate_attributes};
}

}  // namespace sheaf

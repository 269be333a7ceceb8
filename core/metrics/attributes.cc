// Attribute values as ExtractGPT counts them. A value is one of five: NN rightly absent, NV invented, VN
// missed, VC right, VW wrong.
#include <algorithm>
#include <unordered_set>

#include "core/metrics/metrics.h"
#include "core/metrics/python_text.h"

namespace sheaf {
namespace {

enum Term { nn, nv, vn, vc, vw };

constexpr std::string_view kAbsent = "n/a";

bool is_value(const MetricItem& item) {
  if (!item.prediction || item.prediction->empty()) return false;
  const bool word_for_none = item.prediction->front() == kAbsent || item.prediction->front() == "None";
  return item.prediction->size() > 1 || !word_for_none;
}

Term judge(const MetricItem& item) {
  const bool wanted = !item.references.empty() && item.references.front().front() != kAbsent;
  if (!is_value(item)) return wanted ? vn : nn;
  if (!wanted) return nv;
  // A list, which ExtractGPT does not know, is right where every part of it is.
  std::unordered_set<std::string_view> accepted;
  for (const auto& reference : item.references)
    if (reference.front() != kAbsent) accepted.insert(python::strip(reference.front()));
  const bool right = std::all_of(item.prediction->begin(), item.prediction->end(),
                                 [&](const std::string& value) { return accepted.contains(value); });
  return right ? vc : vw;
}

void measure_attribute(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  const Term term = judge(item);
  terms[term] = 1;
  scores[0] = term == vc || term == nn ? 1 : 0;
}

double percent(double part, double whole) {
  return whole > 0 ? python::round_to_cents(part / whole * 100) : 0;
}

/// Rounded as the original rounds, F1 from the rounded ones.
void evaluate_attributes(std::span<const double> sums, std::span<double> values) {
  const double precision = percent(sums[vc], sums[nv] + sums[vc] + sums[vw]);
  const double recall = percent(sums[vc], sums[vn] + sums[vc] + sums[vw]);
  values[0] = precision;
  values[1] = recall;
  values[2] =
      precision + recall > 0 ? python::round_to_cents(2 * precision * recall / (precision + recall)) : 0;
  std::copy_n(sums.begin(), 5, values.begin() + 3);
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
    {"vw", true, false, "a value in gold, another in the answer: wrong"}};

}  // namespace

Metric attributes_metric() {
  return {
      .name = "attributes",
      .about =
          "attribute values as ExtractGPT (OA-Mine, AE-110k): right, wrong, missed, invented, rightly absent",
      .values = values,
      .scores = scores,
      .right = 0,
      .terms = 5,
      .best = 100,
      .measure = measure_attribute,
      .evaluate = evaluate_attributes};
}

}  // namespace sheaf

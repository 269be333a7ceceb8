// Right or wrong: a choice among options, an answer to the letter, and whether two runs gave the same one.
#include <algorithm>
#include <unordered_set>

#include "core/metrics/metrics.h"
#include "core/metrics/python_text.h"

namespace sheaf {
namespace {

void count(bool right, std::span<double> terms, std::span<double> scores) {
  scores[0] = terms[0] = right ? 1 : 0;
  terms[1] = 1;
}

/// "c", "C." and "(C)" are the letter C; a longer text stays as it is.
std::string option_name(std::string_view text) {
  text = python::strip(text);
  std::string_view letter = text;
  if (letter.starts_with('(')) letter.remove_prefix(1);
  while (!letter.empty() && (letter.ends_with(')') || letter.ends_with('.') || letter.ends_with(':')))
    letter.remove_suffix(1);
  const bool is_letter = letter.size() == 1 &&
                         ((letter[0] >= 'a' && letter[0] <= 'z') || (letter[0] >= 'A' && letter[0] <= 'Z'));
  return is_letter ? std::string(1, static_cast<char>(letter[0] & ~0x20)) : std::string(text);
}

void measure_choice(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  std::unordered_set<std::string> accepted;
  for (const auto& reference : item.references) accepted.insert(option_name(reference.front()));
  const auto is_accepted = [&](const std::string& answer) { return accepted.contains(option_name(answer)); };
  count(item.prediction && std::any_of(item.prediction->begin(), item.prediction->end(), is_accepted), terms,
        scores);
}

/// The one reference is the other run's answer, spans and all; no reference: it said there is none.
void measure_agreement(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  const bool same =
      item.prediction &&
      (item.references.empty() ? item.prediction->empty() : *item.prediction == item.references.front());
  count(same, terms, scores);
}

void measure_exact_match(const MetricItem& item, std::span<double> terms, std::span<double> scores) {
  const auto is_answer = [&](const auto& reference) { return *item.prediction == reference; };
  const bool none = item.prediction && item.prediction->empty() && item.references.empty();
  count(none || (item.prediction && std::any_of(item.references.begin(), item.references.end(), is_answer)),
        terms, scores);
}

void evaluate_share(std::span<const double> sums, std::span<double> values) {
  values[0] = sums[0] / sums[1];
  values[1] = sums[1];
}

constexpr std::string_view choice_scores[] = {"accuracy"};
constexpr Metric::ValueName choice_values[] = {{"accuracy"}, {"total", true}};
constexpr std::string_view match_scores[] = {"exact_match"};
constexpr Metric::ValueName match_values[] = {{"exact_match"}, {"total", true}};

}  // namespace

Metric accuracy_metric() {
  return {.name = "accuracy",
          .about = "multiple choice (RACE, LongHealth): the share of right options, by letter or by text",
          .values = choice_values,
          .scores = choice_scores,
          .right = 0,
          .terms = 2,
          .measure = measure_choice,
          .evaluate = evaluate_share};
}

Metric exact_match_metric() {
  return {.name = "exact-match",
          .about = "the share of answers that equal an accepted answer to the letter",
          .values = match_values,
          .scores = match_scores,
          .right = 0,
          .terms = 2,
          .measure = measure_exact_match,
          .evaluate = evaluate_share};
}

Metric agreement_metric() {
  return {.name = "agreement",
          .about = "exact match between two runs: --gold and --pred are both predictions",
          .values = match_values,
          .scores = match_scores,
          .right = 0,
          .terms = 2,
          .measure = measure_agreement,
          .evaluate = evaluate_share};
}

}  // namespace sheaf

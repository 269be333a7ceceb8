// Right or wrong: a choice among options, an answer to the letter, and whether two runs gave the same one.
#include <unordered_set>

#include "core/metrics/metrics.h"
#include "core/metrics/python_text.h"

namespace sheaf {
namespace {

/// "c", "C." and "(C)" are the letter C; a longer text stays as it is.
std::string option_name(std::string_view text) {
  text = python::strip(text);
  std::string_view letter = text;
  if (letter.starts_with('(')) letter.remove_prefix(1);
  while (letter.ends_with(')') || letter.ends_with('.') || letter.ends_with(':')) letter.remove_suffix(1);
  const bool is_letter = letter.size() == 1 &&
                         ((letter[0] >= 'a' && letter[0] <= 'z') || (letter[0] >= 'A' && letter[0] <= 'Z'));
  return is_letter ? std::string(1, static_cast<char>(letter[0] & ~0x20)) : std::string(text);
}

void score_choice(const MetricItem& item, std::span<double> scores) {
  if (!item.prediction) return;
  std::unordered_set<std::string> accepted;
  for (const auto& reference : item.references) accepted.insert(option_name(reference.front()));
  scores[0] = std::ranges::any_of(
      *item.prediction, [&](const std::string& answer) { return accepted.contains(option_name(answer)); });
}

/// The one reference is the other run's answer, spans and all; no reference: it said there is none.
void score_agreement(const MetricItem& item, std::span<double> scores) {
  if (!item.prediction) return;
  scores[0] =
      item.references.empty() ? item.prediction->empty() : *item.prediction == item.references.front();
}

void score_exact_match(const MetricItem& item, std::span<double> scores) {
  if (!item.prediction) return;
  scores[0] = (item.prediction->empty() && item.references.empty()) ||
              std::ranges::find(item.references, *item.prediction) != item.references.end();
}

constexpr Metric::ValueName choice_values[] = {{"accuracy"}, {"total", true}};
constexpr Metric::ValueName match_values[] = {{"exact_match"}, {"total", true}};

}  // namespace

bool is_option_letter(std::string_view text) {
  const std::string name = option_name(text);
  return name.size() == 1 && name[0] >= 'A' && name[0] <= 'Z';
}

Metric accuracy_metric() {
  return mean_metric<score_choice>(
      "accuracy", "multiple choice (RACE, LongHealth): the share of right options, by letter or by text",
      choice_values, 0);
}

Metric exact_match_metric() {
  return mean_metric<score_exact_match>(
      "exact-match", "the share of answers that equal an accepted answer to the letter", match_values, 0);
}

Metric agreement_metric() {
  return mean_metric<score_agreement>(
      "agreement", "exact match between two runs: --gold and --pred are both predictions", match_values, 0);
}

}  // namespace sheaf

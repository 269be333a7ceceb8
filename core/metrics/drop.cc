// DROP as its official drop_eval.py counts: answers are lists of spans, spans are sets of words in which
// numbers are compared by value, and predicted spans are paired with wanted ones as favourably as possible.
#include <limits>
#include <set>

#include "core/base/error.h"
#include "core/metrics/answer_tokens.h"
#include "core/metrics/assignment.h"
#include "core/metrics/metrics.h"
#include "core/metrics/python_text.h"

namespace sheaf {
namespace {

constexpr size_t kMostSpans = 500;  // pairing them takes the cube of their number

struct Span {
  std::string normalized;
  std::vector<std::string> words;    // each once, in order
  std::vector<std::string> numbers;  // numbers among `words`
};

std::string normalize_word(std::string_view word) {
  std::string text = python::lower(word);
  std::optional<double> number = python::parse_number(text);
  if (!number) {
    std::erase_if(text, python::is_punctuation);
    number = python::parse_number(text);
  }
  return remove_articles(number ? python::text_of(*number) : text);
}

Span read_span(std::string_view text) {
  Span span;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find_first_of(" -", at), text.size());
    const std::string word = normalize_word(text.substr(at, end - at));
    for (const std::string_view part : python::split(word)) {
      if (!span.normalized.empty()) span.normalized += ' ';
      span.normalized += part;
      span.words.emplace_back(part);
    }
    at = end + 1;
  }
  std::ranges::sort(span.words);
  span.words.erase(std::unique(span.words.begin(), span.words.end()), span.words.end());
  for (const std::string& word : span.words)
    if (python::parse_number(word)) span.numbers.push_back(word);
  return span;
}

std::vector<Span> read_spans(const MetricItem& item, const std::vector<std::string>& texts) {
  if (texts.size() > kMostSpans)
    refuse("an answer to question {} has {} spans; the metric drop takes at most {}", item.id, texts.size(),
           kMostSpans);
  std::vector<Span> spans;
  spans.reserve(texts.size());
  for (const std::string& text : texts) spans.push_back(read_span(text));
  return spans;
}

double span_f1(const Span& predicted, const Span& gold) {
  // A span that names numbers is not met without one of them.
  if (!gold.numbers.empty() &&
      std::none_of(gold.numbers.begin(), gold.numbers.end(), [&](const std::string& number) {
        return std::ranges::binary_search(predicted.words, number);
      }))
    return 0;
  size_t shared = 0;
  for (auto a = predicted.words.begin(), b = gold.words.begin();
       a != predicted.words.end() && b != gold.words.end();) {
    const int order = a->compare(*b);
    shared += order == 0 ? 1 : 0;
    if (order <= 0) ++a;
    if (order >= 0) ++b;
  }
  const auto same = static_cast<double>(shared);
  const double precision = predicted.words.empty() ? 1 : same / static_cast<double>(predicted.words.size());
  const double recall = gold.words.empty() ? 1 : same / static_cast<double>(gold.words.size());
  return precision == 0 && recall == 0 ? 0 : 2 * precision * recall / (precision + recall);
}

bool same_spans(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::set<std::string_view> first, second;
  for (const Span& span : a) first.insert(span.normalized);
  for (const Span& span : b) second.insert(span.normalized);
  return a.size() == b.size() && first == second;
}

double answer_f1(const std::vector<Span>& predicted, const std::vector<Span>& gold) {
  std::vector<double> scores;
  for (const Span& wanted : gold)
    for (const Span& span : predicted) scores.push_back(span_f1(span, wanted));
  const double sum = best_assignment(scores, gold.size(), predicted.size());
  const double mean = sum / static_cast<double>(std::max(gold.size(), predicted.size()));
  return std::rint(mean * 100) / 100;  // as numpy rounds
}

struct Best {
  double em = 0, f1 = 0;
  size_t reference = 0;  // the last that has both
};

Best best_of(const MetricItem& item) {
  Best best;
  if (!item.prediction) return best;
  std::vector<Span> predicted = read_spans(item, *item.prediction);
  if (predicted.empty()) predicted.emplace_back();
  for (size_t i = 0; i < item.references.size(); ++i) {
    if (python::strip(item.references[i].front()).empty()) continue;
    const std::vector<Span> gold = read_spans(item, item.references[i]);
    const double em = same_spans(predicted, gold) ? 1 : 0, f1 = answer_f1(predicted, gold);
    best.em = std::max(best.em, em);
    best.f1 = std::max(best.f1, f1);
    if (best.em == em && best.f1 == f1) best.reference = i;
  }
  return best;
}

void score_drop(const MetricItem& item, std::span<double> scores) {
  const Best best = best_of(item);
  scores[0] = best.em;
  scores[1] = best.f1;
}

/// By the kind of the reference that was met best, of the first where there is no prediction.
std::string_view kind_of(const MetricItem& item) {
  const size_t reference = best_of(item).reference;
  return reference < item.kinds.size() ? std::string_view(item.kinds[reference]) : std::string_view();
}

constexpr Metric::ValueName drop_scores[] = {{"em"}, {"f1"}};
constexpr Metric::ValueName drop_values[] = {{"global_em"}, {"global_f1"}, {"total", true}};

}  // namespace

Metric drop_metric() {
  Metric metric = mean_metric<score_drop>(
      "drop", "DROP: exact match and F1 of numbers, dates and lists of spans", drop_values, 0);
  metric.scores = drop_scores;
  metric.group = kind_of;
  return metric;
}

}  // namespace sheaf

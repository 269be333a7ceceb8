// Questions with several answers, all of which are wanted (QAMPARI, QUEST), as LOFT's evaluation/rag.py
// counts them.
#include <fmt/ranges.h>
#include <set>

#include "core/base/error.h"
#include "core/metrics/answer_tokens.h"
#include "core/metrics/assignment.h"
#include "core/metrics/metrics.h"
#include "core/text/unicode.h"

namespace sheaf {
namespace {

using Texts = std::vector<std::string>;

constexpr size_t kMostAnswers = 500;  // pairing them takes the cube of their number

std::string stripped(std::string_view text) {
  constexpr std::string_view around = " \t\r\n\"'";
  const size_t begin = std::min(text.find_first_not_of(around), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(around) + 1 - begin));
}

/// Where the quoted text that begins at `at` ends: at a quote before a comma or the end.
size_t quote_end(std::string_view list, size_t at) {
  for (size_t end = list.find(list[at], at + 1); end != std::string_view::npos;
       end = list.find(list[at], end + 1)) {
    const size_t next = list.find_first_not_of(' ', end + 1);
    if (next == std::string_view::npos || list[next] == ',') return end;
  }
  return std::string_view::npos;
}

/// The answers that a text lists: between its first [ and its last ], where it has both, otherwise the whole;
/// separated by commas outside of quotes, or by semicolons where it has some.
Texts listed_answers(std::string_view text) {
  const size_t open = text.find('['), close = text.rfind(']');
  if (open != std::string_view::npos && close != std::string_view::npos && close > open)
    text = text.substr(open + 1, close - open - 1);
  const char separator = text.find(';') == std::string_view::npos ? ',' : ';';
  Texts answers;
  for (size_t at = 0; at < text.size();) {
    at = text.find_first_not_of(' ', at);
    if (at == std::string_view::npos) break;
    size_t from = at;
    if (text[at] == '"' || text[at] == '\'')
      if (const size_t end = quote_end(text, at); end != std::string_view::npos) from = end;
    const size_t end = std::min(text.find(separator, from), text.size());
    if (std::string answer = stripped(text.substr(at, end - at)); !answer.empty())
      answers.push_back(std::move(answer));
    at = end + 1;
  }
  return answers;
}

std::string normalized(const std::string& text) {
  return fmt::format("{}", fmt::join(answer_tokens(normalize_nfd(text)), " "));
}

void score_list(const MetricItem& item, std::span<double> scores) {
  if (item.references.empty()) {
    std::ranges::fill(scores, NAN);
    return;
  }
  if (!item.prediction || item.prediction->empty()) return;
  Texts wanted, given;
  for (const auto& reference : item.references) wanted.push_back(normalized(reference.front()));
  for (const std::string& text : *item.prediction)
    for (const std::string& answer : listed_answers(text)) given.push_back(normalized(answer));
  if (given.empty()) return;
  for (const Texts* texts : {&wanted, &given})
    if (texts->size() > kMostAnswers)
      refuse("question {} has {} answers; the metric answer-list takes at most {}", item.id, texts->size(),
             kMostAnswers);
  const std::set<std::string> first(wanted.begin(), wanted.end()), second(given.begin(), given.end());
  scores[1] = first == second;
  size_t covered = 0;
  for (const std::string& each : first) covered += second.contains(each);
  scores[2] = static_cast<double>(covered) / static_cast<double>(wanted.size());
  std::vector<double> meets;
  for (const std::string& want : wanted)
    for (const std::string& give : given)
      meets.push_back(want.find(give) != std::string::npos || give.find(want) != std::string::npos);
  // The original pairs as many as it can, so all wanted ones are met where as many pairs are.
  scores[0] = best_assignment(meets, wanted.size(), given.size()) + 0.5 > static_cast<double>(wanted.size());
}

constexpr Metric::ValueName list_values[] = {{"subspan_em"}, {"em"}, {"coverage"}, {"total", true}};

}  // namespace

Metric answer_list_metric() {
  Metric metric = mean_metric<score_list>(
      "answer-list",
      "LOFT's questions with several answers: whether, and how many of, the wanted ones are listed",
      list_values, 0);
  metric.main = 0;
  return metric;
}

}  // namespace sheaf

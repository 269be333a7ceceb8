// LongBench, its English sets and its code, as its eval.py counts them: one score for each question, by the
// set that it is of.
#include <set>

#include "core/base/error.h"
#include "core/metrics/answer_tokens.h"
#include "core/metrics/metrics.h"
#include "core/metrics/python_text.h"
#include "core/metrics/rouge_l.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using Texts = std::vector<std::string>;

constexpr size_t kMostCells = 200'000'000;  // of a table of two texts
constexpr std::string_view kDigits = "0123456789";

/// re.findall(r"\d+", text), of ASCII digits.
Texts numbers_in(std::string_view text) {
  Texts numbers;
  for (size_t at = text.find_first_of(kDigits); at < text.size(); at = text.find_first_of(kDigits, at)) {
    const size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
    numbers.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return numbers;
}

/// The share of the numbers in an answer that are the right one.
double number_share(const std::string& answer, const std::string& wanted) {
  const Texts numbers = numbers_in(answer);
  if (numbers.empty()) return 0;
  return static_cast<double>(std::ranges::count(numbers, wanted)) / static_cast<double>(numbers.size());
}

double retrieval_score(const std::string& answer, const std::string& reference) {
  const std::string_view before = "Paragraph ";
  for (size_t at = reference.find(before); at != std::string::npos; at = reference.find(before, at + 1))
    if (const size_t digits = at + before.size(); reference.find_first_of(kDigits, digits) == digits)
      return number_share(answer, numbers_in(std::string_view(reference).substr(digits)).front());
  return 0;
}

double qa_f1(const std::string& answer, const std::string& reference) {
  return TokenBag(answer_tokens(answer)).f1(TokenBag(answer_tokens(reference)));
}

/// The first line that is code: without a backquote, a # and a //.
std::string first_code_line(std::string_view answer) {
  answer.remove_prefix(std::min(answer.find_first_not_of('\n'), answer.size()));
  while (true) {
    const std::string_view line = answer.substr(0, answer.find('\n'));
    if (line.find_first_of("`#") == std::string_view::npos && line.find("//") == std::string_view::npos)
      return std::string(line);
    if (line.size() == answer.size()) return {};
    answer.remove_prefix(line.size() + 1);
  }
}

Texts characters_of(std::string_view text) {
  Texts characters;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    characters.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return characters;
}

/// Edit similarity in whole percent: insertions and deletions beside all characters (fuzz.ratio with
/// python-Levenshtein).
double code_similarity(const std::string& answer, const std::string& reference) {
  const Texts first = characters_of(first_code_line(answer)), second = characters_of(reference);
  const size_t all = first.size() + second.size();
  if (first.empty() || second.empty()) return 0;  // as fuzz.ratio has it
  const auto shared = static_cast<double>(CommonSubsequence(first).length_with(second));
  return std::rint(100 * 2 * shared / static_cast<double>(all)) / 100;
}

double classification_score(const std::string& answer, const std::string& reference, const Texts& classes) {
  Texts named;
  for (const std::string& each : classes)
    if (answer.find(each) != std::string::npos) named.push_back(each);
  // The original takes entries off the list that it walks, and so passes over the one behind each.
  for (size_t i = 0; i < named.size(); ++i)
    if (reference.find(named[i]) != std::string::npos && named[i] != reference)
      named.erase(std::ranges::find(named, named[i]));
  return std::ranges::find(named, reference) == named.end() ? 0 : 1 / static_cast<double>(named.size());
}

/// What stands between full stops, each with one space between its words.
std::vector<Texts> sentences_of(std::string_view text) {
  std::vector<Texts> sentences;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('.', at), text.size());
    if (end > at) {
      Texts& words = sentences.emplace_back();
      for (const std::string_view word : python::split(text.substr(at, end - at))) words.emplace_back(word);
      if (words.empty()) words.emplace_back();  // "".split(" ") is [""]
    }
    at = end + 1;
  }
  return sentences;
}

/// Adds the words of a longest common subsequence, of several the one that the package `rouge` finds.
void add_common(const Texts& reference, const Texts& answer, std::set<std::string>& common) {
  const size_t width = answer.size() + 1;
  std::vector<uint32_t> table((reference.size() + 1) * width, 0);
  for (size_t i = 1; i <= reference.size(); ++i)
    for (size_t j = 1; j < width; ++j)
      table[i * width + j] = reference[i - 1] == answer[j - 1]
                                 ? table[(i - 1) * width + j - 1] + 1
                                 : std::max(table[(i - 1) * width + j], table[i * width + j - 1]);
  for (size_t i = reference.size(), j = answer.size(); i > 0 && j > 0;) {
    if (reference[i - 1] == answer[j - 1]) {
      common.insert(reference[i - 1]);
      --i;
      --j;
    } else if (table[(i - 1) * width + j] > table[i * width + j - 1]) {
      --i;
    } else {
      --j;
    }
  }
}

/// ROUGE-L of summaries as the package `rouge` has it: sets of words, sentence by sentence.
double rouge_score(const MetricItem& item, const std::string& answer, const std::string& reference) {
  const std::vector<Texts> answers = sentences_of(answer), references = sentences_of(reference);
  if (answers.empty() || references.empty()) return 0;
  const auto words = [](const std::vector<Texts>& sentences) {
    size_t count = 0;
    for (const Texts& sentence : sentences) count += sentence.size();
    return count;
  };
  if (words(answers) > kMostCells / words(references))
    refuse("the answer to question {} has {} words, too many for ROUGE-L beside a reference of {}", item.id,
           words(answers), words(references));
  std::set<std::string> said, wanted, common;
  for (const Texts& sentence : answers) said.insert(sentence.begin(), sentence.end());
  for (const Texts& sentence : references) {
    wanted.insert(sentence.begin(), sentence.end());
    for (const Texts& own : answers) add_common(sentence, own, common);
  }
  const auto shared = static_cast<double>(common.size());
  const double precision = shared / static_cast<double>(said.size()),
               recall = shared / static_cast<double>(wanted.size());
  return 2 * (precision * recall / (precision + recall + 1e-8));
}

double score_by_set(const MetricItem& item, const std::string& answer, const std::string& reference) {
  const std::string& set = item.category;
  if (set == "passage_count") return number_share(answer, reference);
  if (set == "passage_retrieval_en") return retrieval_score(answer, reference);
  if (set == "lcc" || set == "repobench-p") return code_similarity(answer, reference);
  if (set == "trec") return classification_score(answer, reference, item.kinds);
  if (set == "gov_report" || set == "qmsum" || set == "multi_news" || set == "samsum")
    return rouge_score(item, answer, reference);
  return qa_f1(answer, reference);
}

void score_longbench(const MetricItem& item, std::span<double> scores) {
  if (!item.prediction || item.prediction->empty()) return;
  std::string answer = item.prediction->front();
  if (item.category == "trec" || item.category == "triviaqa" || item.category == "samsum") {
    answer.erase(0, std::min(answer.find_first_not_of('\n'), answer.size()));
    answer.resize(std::min(answer.find('\n'), answer.size()));
  }
  for (const auto& reference : item.references)
    scores[0] = std::max(scores[0], score_by_set(item, answer, reference.front()));
}

constexpr Metric::ValueName longbench_values[] = {{"score"}, {"total", true}};

}  // namespace

Metric longbench_metric() {
  return mean_metric<score_longbench, 100>(
      "longbench",
      "LongBench: F1 of words, ROUGE-L, edit similarity, classification, counting or retrieval, by the set",
      longbench_values, -1);
}

}  // namespace sheaf

#include "core/metrics/rouge_l.h"

#include <bit>
#include <map>
#include <span>
#include <string_view>

#include "core/metrics/metrics.h"
#include "core/metrics/python_text.h"

// ROUGE-L as the Python package rouge-score computes it (rouge_scorer.score_multi of "rougeL").
// M. Porter, "An algorithm for suffix stripping", 1980, and what NLTK changed in it.

namespace sheaf {
namespace {

bool is_vowel_letter(char c) {
  return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u';
}

/// A y is a consonant at the start and after a vowel.
bool is_consonant(std::string_view word, size_t at) {
  if (word[at] != 'y') return !is_vowel_letter(word[at]);
  size_t run = at;
  while (run > 0 && word[run - 1] == 'y') --run;
  const bool first = run == 0 || is_vowel_letter(word[run - 1]);
  return first == ((at - run) % 2 == 0);
}

/// How often a consonant follows a vowel.
int measure(std::string_view stem) {
  int count = 0;
  bool before = true;
  for (size_t i = 0; i < stem.size(); ++i) {
    const bool now = stem[i] == 'y' ? i == 0 || !before : !is_vowel_letter(stem[i]);
    if (i > 0 && now && !before) ++count;
    before = now;
  }
  return count;
}

bool has_vowel(std::string_view stem) {
  for (size_t i = 0; i < stem.size(); ++i) {
    // The first letter that is no consonant by itself settles it; a y is one only after a consonant.
    if (is_vowel_letter(stem[i]) || (stem[i] == 'y' && i > 0)) return true;
  }
  return false;
}

bool ends_double_consonant(std::string_view word) {
  const size_t n = word.size();
  return n >= 2 && word[n - 1] == word[n - 2] && is_consonant(word, n - 1);
}

/// Consonant, vowel, consonant other than w, x, y; or, of two letters, vowel and consonant.
bool ends_short(std::string_view word) {
  const size_t n = word.size();
  if (n == 2) return !is_consonant(word, 0) && is_consonant(word, 1);
  return n >= 3 && is_consonant(word, n - 3) && !is_consonant(word, n - 2) && is_consonant(word, n - 1) &&
         word[n - 1] != 'w' && word[n - 1] != 'x' && word[n - 1] != 'y';
}

std::string_view without(std::string_view word, std::string_view suffix) {
  return word.substr(0, word.size() - suffix.size());
}

std::string replace(std::string_view word, std::string_view suffix, std::string_view by) {
  return std::string(without(word, suffix)).append(by);
}

struct Rule {
  std::string_view suffix, by = {};
};

/// The first rule whose suffix the word has decides: it is applied where the stem's measure is above `above`.
std::string apply(std::string_view word, std::span<const Rule> rules, int above) {
  for (const Rule& rule : rules) {
    if (!word.ends_with(rule.suffix)) continue;
    const std::string_view stem = without(word, rule.suffix);
    bool good = measure(stem) > above;
    if (rule.suffix == "logi") good = measure(word.substr(0, word.size() - 3)) > above;
    if (rule.suffix == "ion") good = good && (stem.ends_with('s') || stem.ends_with('t'));
    return good ? replace(word, rule.suffix, rule.by) : std::string(word);
  }
  return std::string(word);
}

std::string step_1a(std::string_view word) {
  if (word.ends_with("ies")) return replace(word, "ies", word.size() == 4 ? "ie" : "i");
  if (word.ends_with("sses")) return replace(word, "sses", "ss");
  if (word.ends_with("ss") || !word.ends_with('s')) return std::string(word);
  return replace(word, "s", "");
}

std::string step_1b(std::string_view word) {
  if (word.ends_with("ied")) return replace(word, "ied", word.size() == 4 ? "ie" : "i");
  if (word.ends_with("eed"))
    return measure(without(word, "eed")) > 0 ? replace(word, "eed", "ee") : std::string(word);
  std::string_view stem;
  for (std::string_view suffix : {"ed", "ing"})
    if (word.ends_with(suffix) && has_vowel(without(word, suffix))) stem = without(word, suffix);
  if (stem.empty()) return std::string(word);
  for (std::string_view ending : {"at", "bl", "iz"})
    if (stem.ends_with(ending)) return std::string(stem) + 'e';
  if (ends_double_consonant(stem)) {
    const char last = stem.back();
    if (last != 'l' && last != 's' && last != 'z') stem.remove_suffix(1);
    return std::string(stem);
  }
  return measure(stem) == 1 && ends_short(stem) ? std::string(stem) + 'e' : std::string(stem);
}

std::string step_1c(std::string_view word) {
  const bool change = word.ends_with('y') && word.size() > 2 && is_consonant(word, word.size() - 2);
  return change ? replace(word, "y", "i") : std::string(word);
}

constexpr Rule step_2_rules[] = {
    {"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
    {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"}, {"eli", "e"},     {"ousli", "ous"},
    {"ization", "ize"}, {"ation", "ate"},   {"ator", "ate"},  {"alism", "al"},  {"iveness", "ive"},
    {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},  {"iviti", "ive"}, {"biliti", "ble"},
    {"fulli", "ful"},   {"logi", "log"}};
constexpr Rule step_3_rules[] = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                                 {"ical", "ic"},  {"ful", ""},   {"ness", ""}};
constexpr Rule step_4_rules[] = {{"al"},  {"ance"},  {"ence"}, {"er"},  {"ic"},  {"able"}, {"ible"},
                                 {"ant"}, {"ement"}, {"ment"}, {"ent"}, {"ion"}, {"ou"},   {"ism"},
                                 {"ate"}, {"iti"},   {"ous"},  {"ive"}, {"ize"}};

std::string step_2(std::string word) {
  while (word.ends_with("alli") && measure(without(word, "alli")) > 0) word.resize(word.size() - 2);
  return apply(word, step_2_rules, 0);
}

std::string step_5(std::string word) {
  if (word.ends_with('e')) {
    const std::string_view stem = without(word, "e");
    const int m = measure(stem);
    if (m > 1 || (m == 1 && !ends_short(stem))) word.pop_back();
  }
  if (word.ends_with("ll") && measure(without(word, "l")) > 1) word.pop_back();
  return word;
}

using Tokens = std::vector<std::string>;

/// Runs of ASCII letters and digits in lower case.
Tokens rouge_tokens(std::string_view text, bool stem) {
  const std::string low = python::lower(text);
  Tokens tokens;
  std::string word;
  const auto close = [&] {
    if (word.empty()) return;
    if (stem && word.size() > 3) word = porter_stem(std::move(word));
    tokens.push_back(std::move(word));
    word.clear();
  };
  for (const char c : low) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      word += c;
    else
      close();
  }
  close();
  return tokens;
}

template <bool stem>
void score_rouge(const MetricItem& item, std::span<double> scores) {
  if (!item.prediction || item.prediction->empty()) return;
  const Tokens predicted = rouge_tokens(item.prediction->front(), stem);
  const CommonSubsequence with_predicted(predicted);
  for (const auto& reference : item.references) {
    const Tokens wanted = rouge_tokens(reference.front(), stem);
    if (predicted.empty() || wanted.empty()) continue;
    const auto common = static_cast<double>(with_predicted.length_with(wanted));
    const double precision = common / static_cast<double>(predicted.size());
    const double recall = common / static_cast<double>(wanted.size());
    const double f1 = precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
    if (f1 <= scores[0]) continue;  // the first of equals counts
    scores[0] = f1;
    scores[1] = precision;
    scores[2] = recall;
  }
}

constexpr Metric::ValueName rouge_values[] = {
    {"rougeL"}, {"rougeL_precision"}, {"rougeL_recall"}, {"total", true}};

}  // namespace

std::string porter_stem(std::string word) {
  static const std::map<std::string, std::string, std::less<>> irregular = {
      {"sky", "sky"},        {"skies", "sky"},       {"dying", "die"},        {"lying", "lie"},
      {"tying", "tie"},      {"news", "news"},       {"innings", "inning"},   {"inning", "inning"},
      {"outings", "outing"}, {"outing", "outing"},   {"cannings", "canning"}, {"canning", "canning"},
      {"howe", "howe"},      {"proceed", "proceed"}, {"exceed", "exceed"},    {"succeed", "succeed"}};
  if (const auto found = irregular.find(word); found != irregular.end()) return found->second;
  if (word.size() <= 2) return word;
  word = step_1c(step_1b(step_1a(word)));
  word = apply(step_2(std::move(word)), step_3_rules, 0);
  return step_5(apply(word, step_4_rules, 1));
}

CommonSubsequence::CommonSubsequence(const std::vector<std::string>& words) : count_(words.size()) {
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<Places>& places = places_[words[i]];
    if (places.empty() || places.back().word != i / 64) places.push_back({i / 64, 0});
    places.back().where |= uint64_t{1} << i % 64;
  }
}

size_t CommonSubsequence::length_with(const std::vector<std::string>& others) const {
  // A zero at i: the subsequence is one longer with word i than without it.
  std::vector<uint64_t> rises((count_ + 63) / 64, ~uint64_t{0});
  for (const std::string& other : others) {
    const auto found = places_.find(other);
    if (found == places_.end()) continue;
    // rises = (rises + matches) | (rises - matches), as one long number.
    uint64_t carry = 0;
    size_t at = 0;  // where the carry goes
    const auto carry_on = [&](size_t end) {
      for (; carry != 0 && at < end; ++at) {
        const uint64_t before = rises[at];
        rises[at] = before | (before + 1);
        carry = before == ~uint64_t{0};
      }
    };
    for (const Places& places : found->second) {
      carry_on(places.word);
      at = places.word;
      const uint64_t before = rises[at], matches = before & places.where;
      const uint64_t sum = before + matches;
      rises[at] = (sum + carry) | (before - matches);
      carry = sum < before || sum + carry < sum;
      ++at;
    }
    carry_on(rises.size());
  }
  size_t zeros = 0;
  for (const uint64_t word : rises) zeros += static_cast<size_t>(std::popcount(~word));
  return zeros;
}

Metric rouge_l_metric() {
  return mean_metric<score_rouge<false>>(
      "rouge-l", "ROUGE-L as the package rouge-score: F of the longest common subsequence of words",
      rouge_values, -1);
}

Metric rouge_l_stem_metric() {
  return mean_metric<score_rouge<true>>("rouge-l-stem", "the same on Porter stems (use_stemmer=True)",
                                        rouge_values, -1);
}

}  // namespace sheaf

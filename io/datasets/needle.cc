#include "io/datasets/needle.h"

#include <algorithm>
#include <array>
#include <fmt/ranges.h>
#include <random>
#include <span>

#include "core/base/error.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 12> kAnimals = {
    "dog", "cat", "horse", "fox", "goat", "sheep", "mouse", "rabbit", "otter", "bear", "donkey", "badger"};
constexpr std::array<std::string_view, 8> kParts = {"fur",  "nose", "belly", "tail",
                                                    "back", "neck", "chin",  "skin"};
constexpr std::array<std::string_view, 8> kColors = {"black",  "white", "brown", "yellow",
                                                     "orange", "red",   "green", "blue"};
// A name is one of the first and one of the second: 400, enough for Hydragen's 261 dogs.
constexpr std::array<std::string_view, 20> kBeginnings = {"Al",  "Ber", "Cor", "Dan", "El",  "Fen", "Gar",
                                                          "Hal", "Il",  "Jor", "Kal", "Lor", "Mar", "Nor",
                                                          "Or",  "Per", "Ros", "Sel", "Tor", "Wil"};
constexpr std::array<std::string_view, 20> kEndings = {"a",   "an",   "as",  "bert", "da",  "den", "do",
                                                       "ena", "fin",  "ga",  "ia",   "ik",  "in",  "la",
                                                       "lo",  "mond", "ner", "sey",  "ton", "vin"};

struct Fact {
  std::string sentence, question, color;
};

/// Gives the same order on every machine, unlike std::shuffle and std's distributions.
template <class Value>
void shuffle(std::vector<Value>& values, std::mt19937_64& random) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

std::vector<Fact> make_facts(size_t count, bool dogs, std::mt19937_64& random) {
  const size_t animals = dogs ? 1 : kAnimals.size(), parts = dogs ? 1 : kParts.size();
  const size_t names = kBeginnings.size() * kEndings.size();
  std::vector<size_t> numbers(animals * parts * names);
  if (count > numbers.size())
    refuse("a document cannot have {} facts; there are only {}", count, numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  shuffle(numbers, random);
  std::vector<Fact> facts;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view animal = kAnimals[numbers[i] % animals];
    const std::string_view part = kParts[numbers[i] / animals % parts];
    const size_t number = numbers[i] / animals / parts;
    const std::string name =
        fmt::format("{}{}", kBeginnings[number / kEndings.size()], kEndings[number % kEndings.size()]);
    const std::string_view color = kColors[random() % kColors.size()];
    facts.push_back({fmt::format("The {} named {} has {} that is {}.", animal, name, part, color),
                     fmt::format("What color is the {} of the {} named {}?", part, animal, name),
                     std::string(color)});
  }
  return facts;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; (at = text.find_first_not_of(" \t\r\n\f\v", at)) != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(" \t\r\n\f\v", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

bool ends_sentence(const std::string& word) {
  std::string_view end = word;
  while (end.ends_with("\"") || end.ends_with("'") || end.ends_with(")")) end.remove_suffix(1);
  if (end.ends_with("”") || end.ends_with("’")) end.remove_suffix(3);
  return end.ends_with('.') || end.ends_with('!') || end.ends_with('?');
}

std::string joined(std::span<const std::string> words) {
  return fmt::format("{}", fmt::join(words, " "));
}

/// How many words from `first` on make a text of `length`.
size_t words_for(const std::vector<std::string>& words, size_t first, const NeedleOptions& options) {
  const auto wanted = static_cast<size_t>(options.length);
  if (!options.measure) return std::min(wanted, words.size() - first);
  size_t low = 0, high = std::min(wanted, words.size() - first);  // a word is at least one token
  while (low < high) {
    const size_t middle = low + (high - low + 1) / 2;
    if (options.measure(joined(std::span(words).subspan(first, middle))) <= options.length)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/// The words with the facts spread evenly over the ends of sentences; the first fact stands before them.
std::string interleave(std::span<const std::string> words, const std::vector<Fact>& facts) {
  std::string text;
  size_t given = 0;
  const auto give = [&](size_t until) {
    for (; given < std::min(until, facts.size()); ++given)
      text += (text.empty() ? "" : " ") + facts[given].sentence;
  };
  give(1);
  for (size_t i = 0; i < words.size(); ++i) {
    text += " " + words[i];
    if (ends_sentence(words[i])) give(1 + (i + 1) * (facts.size() - 1) / words.size());
  }
  give(facts.size());
  return text;
}

ordered_json make_document(std::span<const std::string> words, int64_t number, const NeedleOptions& options,
                           std::mt19937_64& random) {
  const auto shots = static_cast<size_t>(options.shots);
  std::vector<Fact> facts = make_facts(static_cast<size_t>(options.questions) + shots, options.dogs, random);
  std::string context = interleave(words, facts);
  shuffle(facts, random);
  for (size_t i = 0; i < shots; ++i)
    context += fmt::format("\n\nQuestion: {}\nAnswer: {}", facts[i].question, facts[i].color);
  const std::string id = fmt::format("needle-{}", number);
  ordered_json row{{"id", id}, {"context", context}};
  ordered_json& questions = row["questions"] = ordered_json::array();
  for (size_t i = shots; i < facts.size(); ++i)
    questions.push_back({{"id", fmt::format("{}/{}", id, i - shots)},
                         {"question", facts[i].question},
                         {"answers", {facts[i].color}}});
  return row;
}

}  // namespace

std::vector<ordered_json> make_needles(const std::string& book, const std::string& source,
                                       const NeedleOptions& options) {
  if (valid_prefix(book) < book.size()) refuse("{}: this is not UTF-8 text", source);
  const std::vector<std::string> words = words_of(book);
  std::vector<size_t> starts;  // of sentences with enough text after them
  for (size_t i = 1; i + static_cast<size_t>(options.length) <= words.size(); ++i)
    if (ends_sentence(words[i - 1])) starts.push_back(i);
  if (starts.empty())
    refuse("{}: the file has only {} words, too few for documents of {}", source, words.size(),
           options.length);
  std::mt19937_64 random(options.seed);
  std::vector<ordered_json> rows;
  for (int64_t i = 0; i < options.count; ++i) {
    const size_t first = starts[random() % starts.size()];
    const size_t count = words_for(words, first, options);
    rows.push_back(make_document(std::span(words).subspan(first, count), i, options, random));
  }
  return rows;
}

}  // namespace sheaf

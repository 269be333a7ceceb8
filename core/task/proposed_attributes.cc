#include "core/task/proposed_attributes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/text/html_text.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "core/text/words.h"

namespace sheaf {
namespace {

constexpr size_t kMostProposals = 200;  // of one reply
constexpr size_t kMostWords = 8;        // of a name or an example

constexpr std::string_view kPrompt =
    "You are an expert at comparing products to determine if they are equivalent in terms of function, "
    "specification, form, design, material, quantity, quality, brand value.\n\n"
    "Analyze the <product> elements below, and output a list of price-sensitive attributes that experienced "
    "customers and product category experts would consider when comparing these products to see if they are "
    "exact equivalents, very similar, or incompatible.\n\n"
    "For each attribute write a brief description which lists 3-6 typical values as examples.\n"
    "Make sure each attribute name is not more than 4 words.\n"
    "Do not include attributes related to price.\n"
    "For each attribute output the data type of its value as numerical or categorical.\n\n"
    "Provide up to {most} attributes, including fine-grained ones.\n\n"
    "Only output a list of XML <attribute> elements with numeric id (as element attribute), product "
    "attribute "
    "<name>, <description> and <datatype>.\n\n"
    "Products:\n\n{products}\n";

/// Words that mean the same: the second stands for the first.
constexpr std::pair<std::string_view, std::string_view> kSame[] = {
    {"aluminium", "aluminum"}, {"amount", "count"},       {"centre", "center"}, {"colour", "color"},
    {"fibre", "fiber"},        {"flavour", "flavor"},     {"grey", "gray"},     {"litre", "liter"},
    {"maker", "brand"},        {"manufacturer", "brand"}, {"metre", "meter"},   {"number", "count"},
    {"odour", "odor"},         {"producer", "brand"},     {"qty", "count"},     {"quantity", "count"}};
constexpr std::string_view kFillers[] = {"the", "of",  "a",    "an",   "and",    "or",
                                         "in",  "for", "with", "item", "product"};
constexpr std::string_view kVague[] = {"name", "type"};
constexpr std::string_view kPrices[] = {"price", "cost"};
constexpr std::string_view kNumerical[] = {"number", "numer", "integer", "float", "decimal", "double"};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  each_word(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

std::string singular(std::string word) {
  const auto ends = [&](std::string_view end) { return word.ends_with(end); };
  if (word.size() < 4 || ends("ss") || ends("us") || ends("is") || !ends("s")) return word;
  if (ends("ies")) return word.substr(0, word.size() - 3) + "y";
  for (const std::string_view end : {"sses", "shes", "ches", "xes"})
    if (ends(end)) return word.substr(0, word.size() - 2);
  word.pop_back();
  return word;
}

std::string plain_word(std::string word) {
  word = singular(std::move(word));
  const auto* same = std::ranges::find(kSame, word, [](const auto& each) { return each.first; });
  return same == std::end(kSame) ? word : std::string(same->second);
}

/// Removes the words for which `says_nothing`, unless no other is left.
template <class SaysNothing>
void leave_out(std::vector<std::string>& words, const SaysNothing& says_nothing) {
  if (!std::ranges::all_of(words, says_nothing)) std::erase_if(words, says_nothing);
}

std::string without_parentheses(std::string_view text) {
  std::string out;
  int open = 0;
  for (const char c : text) {
    if (c == '(') ++open;
    if (open == 0) out += c;
    if (c == ')' && open > 0) --open;
  }
  return out;
}

/// Text between tags as one line.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : html_text(valid_utf8(text)).text) {
    const bool blank = static_cast<unsigned char>(c) <= 0x20 || c == 0x7f;
    if (!blank)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

/// What stands in the first `tag` of the text; nothing where it is not closed.
std::optional<std::string_view> element(std::string_view text, std::string_view open,
                                        std::string_view close) {
  const size_t begin = text.find(open);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text.substr(begin + open.size());
  const size_t end = inside.find(close);
  return end == std::string_view::npos ? std::nullopt : std::optional(inside.substr(0, end));
}

bool is_name(const std::string& name) {
  const std::vector<std::string> words = words_of(name);
  return name.size() <= ProposedAttribute::kLongestName && !words.empty() && words.size() <= kMostWords &&
         std::ranges::none_of(words, [](const std::string& word) {
           return std::ranges::find(kPrices, singular(word)) != std::end(kPrices);
         });
}

/// A value without quotes, brackets and what ends a sentence.
std::string bare(std::string_view value) {
  constexpr std::string_view around = " \t\"'`.;:()[]";
  const size_t begin = value.find_first_not_of(around);
  if (begin == std::string_view::npos) return {};
  return std::string(value.substr(begin, value.find_last_not_of(around) + 1 - begin));
}

/// Whether a text may be a value: no sentence.
bool is_value(const std::string& text) {
  const size_t words = words_of(text).size();
  return words > 0 && words <= kMostWords / 2 && text.size() <= ProposedAttribute::kLongestName;
}

/// Adds the values that stand in elements of their own.
void add_elements(std::string_view text, std::string_view open, std::string_view close,
                  std::vector<std::string>& values) {
  while (const auto inside = element(text, open, close)) {
    if (std::string value = bare(one_line(*inside)); is_value(value)) values.push_back(std::move(value));
    text.remove_prefix(static_cast<size_t>(inside->data() - text.data()) + inside->size());
  }
}

/// The text in small letters with one blank between words and around it, so that whole words can be found.
std::string spaced(std::string_view text) {
  std::string out = " ";
  each_word(text, [&](std::string_view word) { out.append(word).push_back(' '); });
  return out;
}

/// Whether most of the values have a digit. A wrong `number` loses values, a wrong `text` none, so without
/// any value it is a text.
bool holds_numbers(const std::vector<std::string>& values) {
  const auto numbers = std::ranges::count_if(values, [](const std::string& value) {
    return value.find_first_of("0123456789") != std::string::npos;
  });
  return 2 * numbers > std::ssize(values);
}

/// The key with the most votes; of several the one that came first.
template <class Value>
Value most_frequent(const std::vector<Value>& values) {
  std::map<Value, int64_t> counts;
  for (const Value& value : values) ++counts[value];
  return *std::ranges::max_element(values, {}, [&](const Value& value) { return counts[value]; });
}

/// One attribute while replies are gathered.
struct Gathered {
  std::vector<std::string> names, descriptions, examples;
  int64_t numerical = 0, replies = 0;
  size_t last_reply = SIZE_MAX;
  double places = 0;  ///< sum of its place in each reply, from 0

  double mean_place() const { return places / static_cast<double>(replies); }
};

/// `products`: as spaced() has them.
void look_up_examples(const std::vector<std::string>& examples, const std::vector<std::string>& products,
                      MergedAttribute& merged) {
  std::set<std::string> seen;
  std::vector<std::pair<int64_t, std::string>> found;
  std::vector<bool> has(products.size());
  for (const std::string& value : examples) {
    const std::string wanted = spaced(value);
    if (!seen.insert(wanted).second) continue;
    int64_t times = 0;
    for (size_t i = 0; i < products.size(); ++i) {
      if (products[i].find(wanted) == std::string::npos) continue;
      has[i] = true;
      ++times;
    }
    if (times > 0) found.emplace_back(times, value);
  }
  merged.examples = seen.size();
  std::ranges::stable_sort(found, std::ranges::greater(), [](const auto& each) { return each.first; });
  for (auto& [times, value] : found) merged.found.push_back(std::move(value));
  merged.products = std::ranges::count(has, true);
}

}  // namespace

std::string_view discover_prompt() {
  return kPrompt;
}

std::vector<ProposedAttribute> read_proposals(std::string_view reply) {
  constexpr std::string_view open = "<name>";
  std::vector<ProposedAttribute> all;
  for (size_t at = reply.find(open); at != std::string_view::npos && all.size() < kMostProposals;) {
    const size_t next = reply.find(open, at + open.size());
    const std::string_view chunk = reply.substr(at, next == std::string_view::npos ? next : next - at);
    at = next;
    const auto name = element(chunk, open, "</name>");
    if (!name) continue;
    ProposedAttribute attribute{one_line(*name), {}, false};
    if (!is_name(attribute.name)) continue;
    if (const auto text = element(chunk, "<description>", "</description>"))
      attribute.description = shorten_text(one_line(*text), ProposedAttribute::kLongestDescription);
    if (const auto text = element(chunk, "<datatype>", "</datatype>"))
      attribute.numerical = std::ranges::any_of(
          kNumerical, [type = small_letters(one_line(*text))](auto word) { return type.starts_with(word); });
    attribute.examples = example_values(attribute.description);
    add_elements(chunk, "<value>", "</value>", attribute.examples);
    add_elements(chunk, "<example>", "</example>", attribute.examples);
    all.push_back(std::move(attribute));
  }
  return all;
}

std::string attribute_key(std::string_view name, std::string_view category) {
  std::vector<std::string> words = words_of(without_parentheses(name));
  if (words.empty()) words = words_of(name);
  for (std::string& word : words) word = plain_word(std::move(word));
  std::set<std::string> of_category;
  for (std::string& word : words_of(category)) of_category.insert(plain_word(std::move(word)));
  leave_out(words, [](const auto& word) { return std::ranges::find(kFillers, word) != std::end(kFillers); });
  leave_out(words, [&](const auto& word) { return of_category.contains(word); });
  leave_out(words, [](const auto& word) { return std::ranges::find(kVague, word) != std::end(kVague); });
  std::ranges::sort(words);
  words.erase(std::ranges::unique(words).begin(), words.end());
  std::string key;
  for (const std::string& word : words) key += (key.empty() ? "" : " ") + word;
  return key;
}

std::vector<std::string> example_values(std::string_view description) {
  constexpr std::string_view openers[] = {"e.g.",   "such as",   "for example", "examples", "example",
                                          "values", "including", " like ",      ":"};
  const std::string small = small_letters(std::string(description));
  std::string_view list = description;
  bool opened = false;
  for (const std::string_view opener : openers)
    if (const size_t at = small.rfind(opener); at != std::string::npos && !opened) {
      list = description.substr(at + opener.size());
      opened = true;
    }
  std::vector<std::string> values;
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(",;/|"), list.size());
    std::string value = bare(list.substr(0, end));
    for (const std::string_view word : {"include ", "are ", "and ", "or "})
      if (value.starts_with(word)) value = bare(std::string_view(value).substr(word.size()));
    if (is_value(value) && value != "etc") values.push_back(std::move(value));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  // One sentence without commas is no list.
  if (!opened && values.size() < 2) values.clear();
  return values;
}

std::vector<MergedAttribute> merge_proposals(const std::vector<std::vector<ProposedAttribute>>& replies,
                                             std::string_view category,
                                             const std::vector<std::string>& products) {
  std::vector<Gathered> gathered;
  std::map<std::string, size_t> places;
  for (size_t r = 0; r < replies.size(); ++r)
    for (size_t i = 0; i < replies[r].size(); ++i) {
      const ProposedAttribute& each = replies[r][i];
      const auto [found, fresh] = places.try_emplace(attribute_key(each.name, category), gathered.size());
      if (fresh) gathered.emplace_back();
      Gathered& one = gathered[found->second];
      if (one.last_reply == r) continue;  // a model repeats itself
      one.last_reply = r;
      ++one.replies;
      one.places += static_cast<double>(i);
      one.numerical += each.numerical;
      one.names.push_back(each.name);
      if (!each.description.empty()) one.descriptions.push_back(each.description);
      one.examples.insert(one.examples.end(), each.examples.begin(), each.examples.end());
    }
  std::ranges::stable_sort(gathered, [](const Gathered& a, const Gathered& b) {
    return a.replies != b.replies ? a.replies > b.replies : a.mean_place() < b.mean_place();
  });
  std::vector<std::string> texts;
  for (const std::string& product : products) texts.push_back(spaced(product));
  std::vector<MergedAttribute> merged;
  for (const Gathered& one : gathered) {
    MergedAttribute& attribute = merged.emplace_back();
    attribute.as = {most_frequent(one.names), one.descriptions.empty() ? "" : most_frequent(one.descriptions),
                    2 * one.numerical > one.replies && holds_numbers(one.examples)};
    attribute.replies = one.replies;
    for (const std::string& name : one.names)
      if (name != attribute.as.name && std::ranges::find(attribute.others, name) == attribute.others.end())
        attribute.others.push_back(name);
    look_up_examples(one.examples, texts, attribute);
  }
  return merged;
}

}  // namespace sheaf

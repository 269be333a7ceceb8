#include "core/text/json_reader.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "core/text/json_builder.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

std::string_view find_pair(std::span<const Pair> pairs, std::string_view key) {
  const auto found = std::ranges::find(pairs, key, &Pair::first);
  return found == pairs.end() ? std::string_view() : found->second;
}

/// What other languages write, and what JSON has in its place.
constexpr Pair kForeignWords[] = {{"True", "true"},     {"False", "false"},   {"None", "null"},
                                  {"NULL", "null"},     {"nan", "null"},      {"NaN", "null"},
                                  {"Infinity", "null"}, {"undefined", "null"}};

/// The library's names of what stands in a text.
constexpr Pair kTokens[] = {{"':'", "a colon"},
                            {"','", "a comma"},
                            {"true literal", "true"},
                            {"false literal", "false"},
                            {"null literal", "null"},
                            {"string literal", "a text"},
                            {"number literal", "a number"},
                            {"'[', '{', or a literal", "a value"}};

/// Where the library says that a text in quotes went wrong.
constexpr Pair kStrings[] = {
    {"missing closing quote", "a text has no closing quote"},
    {"'\\u' must be", "\\u must be followed by 4 hexadecimal digits"},
    {"surrogate", "\\u with half of a surrogate pair; the other half is missing"},
    {"forbidden character after", "a backslash is followed by a character that JSON does not escape"},
    {"control character", "a line break, tab or control character inside a text; escape it, as in \\n"},
    {"ill-formed UTF-8", "a byte that is not UTF-8"}};

std::string_view token_words(std::string_view token) {
  if (const std::string_view words = find_pair(kTokens, token); !words.empty()) return words;
  return token.size() == 3 && token.front() == '\'' ? token.substr(1, 1) : token;
}

std::string_view expected_words(std::string_view context, std::string_view token) {
  if (context == "object key") return "a key in double quotes";
  if (context == "object" && token == "'}'") return "a comma or }";
  if (context == "array" && token == "']'") return "a comma or ]";
  return token_words(token);
}

bool fits_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Between two marks of the message; empty where the first is missing.
std::string_view part_after(std::string_view message, std::string_view mark, std::string_view end) {
  const size_t at = message.find(mark);
  if (at == std::string_view::npos) return {};
  message.remove_prefix(at + mark.size());
  return message.substr(0, message.find(end));
}

struct JsonTrouble {
  size_t at;  ///< the byte to look at
  std::string what;
};

/// A word without quotes, or a character that begins nothing. `at`: what the library read last.
JsonTrouble unknown_word(std::string_view text, size_t at, bool key) {
  size_t begin = at;
  while (begin > 0 && !fits_word(text[at]) && fits_word(text[begin - 1])) --begin;
  while (begin > 0 && fits_word(text[at]) && fits_word(text[begin - 1])) --begin;
  size_t end = begin;
  while (end < text.size() && fits_word(text[end])) ++end;
  const std::string word(text.substr(begin, end - begin));
  if (const std::string_view json = find_pair(kForeignWords, word); !json.empty())
    return {begin, fmt::format("{} is not JSON; write {}", word, json)};
  if (text[begin] == '\'') return {begin, "a single quote; JSON has only double quotes"};
  if (!word.empty())
    return {begin, fmt::format("unknown word {}; a {} needs double quotes", shorten_text(word, 40),
                               key ? "key" : "text")};
  return {begin, key ? "expected a key in double quotes" : "expected a value"};
}

JsonTrouble find_trouble(std::string_view text, size_t at, std::string_view message) {
  if (message.find("number overflow") != std::string_view::npos)
    return {at, fmt::format("the number {} is too large",
                            shorten_text(part_after(message, "parsing '", "'"), 40))};
  const std::string_view context = part_after(message, "while parsing ", " - "),
                         expected = part_after(message, "; expected ", "\n"),
                         found = part_after(message, "unexpected ", ";");
  if (expected == "end of input") return {at, "something follows the value"};
  if (found == "end of input" || (found.empty() && at >= text.size() && context != "value"))
    return {at, fmt::format("it ends where {} is expected", expected_words(context, expected))};
  if (!found.empty())
    return {at, fmt::format("expected {}, found {}", expected_words(context, expected), token_words(found))};
  for (const auto& [mark, words] : kStrings)
    if (message.find(mark) != std::string_view::npos) return {at, std::string(words)};
  if (message.find("invalid number") != std::string_view::npos) return {at, "a number is not complete"};
  if (at >= text.size()) return {at, "it ends in the middle of a word"};
  return unknown_word(text, at, context == "object key");
}

}  // namespace

std::string describe_json_error(std::string_view text, size_t read, const nlohmann::json::exception& error) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return "not valid JSON: it is empty";
  const JsonTrouble trouble =
      find_trouble(text, std::min(read > 0 ? read - 1 : 0, text.size()), std::string_view(error.what()));
  const std::string_view before = text.substr(0, trouble.at);
  const size_t line_begin = before.rfind('\n') + 1;
  const auto lines = std::ranges::count(before, '\n');
  const size_t column = 1 + count_characters(before.substr(line_begin));
  const std::string place = lines == 0 && text.find('\n') >= text.size() - 1
                                ? fmt::format("column {}", column)
                                : fmt::format("line {}, column {}", lines + 1, column);
  return fmt::format("not valid JSON at {}: {}", place, trouble.what);
}

template <class Json>
Json read_json(std::string_view text, const JsonLimits& limits, std::string* trouble) {
  JsonBuilder<Json> builder(text, limits);
  if (Json::sax_parse(text.begin(), text.end(), &builder)) return std::move(builder.root);
  if (trouble) *trouble = std::move(builder.trouble);
  return Json(Json::value_t::discarded);
}

template nlohmann::json read_json(std::string_view, const JsonLimits&, std::string*);
template nlohmann::ordered_json read_json(std::string_view, const JsonLimits&, std::string*);

}  // namespace sheaf

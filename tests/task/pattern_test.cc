#include "core/text/pattern.h"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <regex>

#include "core/base/error.h"

namespace sheaf {
namespace {

TEST(Pattern, MatchesWholeTexts) {
  struct Case {
    const char* pattern;
    std::vector<std::string> yes, no;
  };
  const std::vector<Case> cases = {
      {"", {""}, {"a"}},
      {"abc", {"abc"}, {"", "ab", "abcd", "xabc"}},
      {"^[A-Z]{2}-\\d{4}$", {"AB-0123"}, {"A-0123", "AB-012", "AB-01234", "ab-0123"}},
      {"a|bc|", {"a", "bc", ""}, {"ab", "b"}},
      {"(ab)+c?", {"ab", "ababc"}, {"", "c", "abcc", "aba"}},
      {"(?:x{2,3}|y{2,})z", {"xxz", "xxxz", "yyyyyz"}, {"xz", "xxxxz", "yz"}},
      {"[^0-9]*", {"", "abc"}, {"a1"}},
      {"[]a]+", {"]a"}, {"b"}},
      {"[a-]+", {"-a"}, {"b"}},
      {"\\.\\-\\\\", {".-\\"}, {"a-\\"}},
      {"\\w+\\s\\S+", {"a_1 ?"}, {"a?"}},
      {".", {"ü", "€", "a"}, {"", "\n", "ab"}},
      {"[ä-ü]ß", {"öß"}, {"oß"}},
      {"(a*)*b", {"b", "aaab"}, {"a"}}};
  for (const Case& each : cases) {
    const Pattern pattern(each.pattern);
    for (const std::string& text : each.yes)
      EXPECT_TRUE(pattern.matches(text)) << each.pattern << " " << text;
    for (const std::string& text : each.no)
      EXPECT_FALSE(pattern.matches(text)) << each.pattern << " " << text;
  }
  EXPECT_FALSE(Pattern(".*").matches("\xff"));
}

TEST(Pattern, UnsupportedSyntaxIsRefused) {
  for (const char* pattern : {"(a",  "a)",  "[a",  "a{2",   "a{3,2}",    "a{,2}", "a{1001}",
                              "*a",  "a**", "a+?", "(?=a)", "(?<n>a)",   "\\1",   "\\b",
                              "a\\", "a^b", "a$b", "[z-a]", "[\\d-z]x[", "[\\D]", "((a{1000}){1000}){9}",
                              "\xff"})
    EXPECT_THROW(Pattern{pattern}, Error) << pattern;
  EXPECT_THROW(Pattern(std::string(100, '(') + std::string(100, ')')), Error);
}

TEST(Pattern, TakesTimeLinearInTheText) {
  // What takes others years.
  const Pattern pattern("(a|aa|a*)*b");
  EXPECT_FALSE(pattern.matches(std::string(20000, 'a')));
  EXPECT_TRUE(pattern.matches(std::string(20000, 'a') + "b"));
}

TEST(Pattern, AgreesWithTheStandardLibrary) {
  std::mt19937 random(3);
  const std::vector<std::string> pieces = {"a",  "b",  "[ab]",   "(a|b)", "(ab|c)", "c?",
                                           "a*", "b+", "c{1,2}", "[^a]",  "(a*b)?"};
  for (int round = 0; round < 2000; ++round) {
    std::string expression;
    for (size_t n = 1 + random() % 4; n > 0; --n) expression += pieces[random() % pieces.size()];
    if (random() % 3 == 0) expression += "|" + pieces[random() % pieces.size()];
    const Pattern pattern(expression);
    const std::regex other(expression);
    for (int i = 0; i < 10; ++i) {
      std::string text;
      for (size_t n = random() % 6; n > 0; --n) text += static_cast<char>('a' + random() % 3);
      ASSERT_EQ(pattern.matches(text), std::regex_match(text, other)) << expression << " " << text;
    }
  }
}

}  // namespace
}  // namespace sheaf

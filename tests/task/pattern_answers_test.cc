// Values that are decoded under a pattern: whatever is picked of the allowed tokens matches it, and all that
// matches can be picked.
#include <gtest/gtest.h>
#include <random>

#include "core/task/text_answers.h"
#include "tests/made_up_tokenizer.h"

namespace sheaf {
namespace {

using test::bytes_and, test::MadeUpTokenizer;

class PatternAnswersTest : public testing::Test {
 protected:
  std::shared_ptr<const PatternAnswers> make(const std::string& pattern, PatternAnswers::Form form = {}) {
    return PatternAnswers::make(spelling_, Pattern(pattern), form);
  }

  /// Whether `text` can be written letter by letter, and is complete with its last one.
  bool takes(const PatternAnswers& answers, const std::string& text) const {
    PatternAnswers::Node node = PatternAnswers::root;
    for (size_t i = 0; i < text.size(); ++i) {
      const TokenId token = *tokenizer_.find({&text[i], 1});
      if (!std::ranges::binary_search(answers.allowed(node), token)) return false;
      node = answers.advance(node, token);
      if (node < 0) return i + 1 == text.size();
    }
    return false;
  }

  MadeUpTokenizer tokenizer_ = bytes_and({" \"", "\",", " null", "\"}\n", "12", "AB-", "ull", "1,"});
  std::shared_ptr<const TokenSpelling> spelling_ = std::make_shared<TokenSpelling>(tokenizer_);
};

TEST_F(PatternAnswersTest, OnlyWhatMatchesCanBeWritten) {
  const auto code = make("[A-Z]{2}-\\d{2,4}");
  for (const char* text : {" \"AB-12\"", "\"QX-0042\"", " null", "null"})
    EXPECT_TRUE(takes(*code, text)) << text;
  for (const char* text : {" \"AB-1\"", "\"ab-12\"", "\"AB-12345\"", " nul\"", " 12", "  \"AB-12\""})
    EXPECT_FALSE(takes(*code, text)) << text;
  EXPECT_FALSE(takes(*make("a+", {true, false}), " null"));
  const auto number = make("-?\\d{1,3}(\\.\\d)?", {false, true});
  for (const char* text : {" 12,", "-1.5\n", "7}", " null"}) EXPECT_TRUE(takes(*number, text)) << text;
  for (const char* text : {" \"12\"", "1.,", "1234,", ".5,"}) EXPECT_FALSE(takes(*number, text)) << text;
}

TEST_F(PatternAnswersTest, WhatCannotBeDecodedIsLeftToBeChecked) {
  for (const char* pattern : {".*", "[^a]", "é+", "[a-z]\"", "(a|b){300}", "\\D"})
    EXPECT_EQ(make(pattern), nullptr) << pattern;
  EXPECT_FALSE(can_decode(Pattern(".")));
  const auto either = make("a\"|b");
  ASSERT_NE(either, nullptr) << "one side can be written without escapes";
  EXPECT_TRUE(takes(*either, "\"b\""));
  EXPECT_FALSE(takes(*either, "\"a\""));
  const MadeUpTokenizer poor({"a", "b", "\"", " "});
  EXPECT_EQ(PatternAnswers::make(std::make_shared<TokenSpelling>(poor), Pattern("a"), {}), nullptr);
}

TEST_F(PatternAnswersTest, EveryWalkEndsInAMatch) {
  std::mt19937 random(5);
  for (const char* text : {"[A-Z]{2}-\\d{4}", "(ab|ba)*c?", "\\w{1,5}( \\w+)?", "(x|y(z|w))+"}) {
    const Pattern pattern(text);
    const auto answers = make(text, {true, false});
    for (int round = 0; round < 200; ++round) {
      std::string written;
      PatternAnswers::Node node = PatternAnswers::root;
      while (node >= 0 && written.size() < 400) {
        const auto allowed = answers->allowed(node);
        ASSERT_FALSE(allowed.empty()) << written;
        const TokenId token = allowed[random() % allowed.size()];
        written += spelling_->bytes.of(token);
        node = answers->advance(node, token);
      }
      if (node >= 0) continue;
      const size_t open = written.find('"'), close = written.find('"', open + 1);
      EXPECT_TRUE(pattern.matches(written.substr(open + 1, close - open - 1))) << written;
    }
  }
}

TEST(PatternTable, AgreesWithThePattern) {
  std::mt19937 random(9);
  for (const char* text : {"(a|b)*abb", "a{2,3}b?|b+", "([ab]c|c[ab]){1,2}", "", "a?b?c?"}) {
    const Pattern pattern(text);
    const auto table = make_pattern_table(pattern, "");
    ASSERT_TRUE(table) << text;
    for (int round = 0; round < 500; ++round) {
      std::string word(random() % 6, 'a');
      for (char& c : word) c = static_cast<char>('a' + random() % 3);
      int16_t state = 0;
      for (const char c : word)
        if (state != PatternTable::kNowhere) state = table->after(state, c);
      const bool accepted = state != PatternTable::kNowhere && table->accepts[static_cast<size_t>(state)];
      EXPECT_EQ(accepted, pattern.matches(word)) << text << " " << word;
    }
  }
}

}  // namespace
}  // namespace sheaf

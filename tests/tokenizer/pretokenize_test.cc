#include "core/tokenizer/pretokenize.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace sheaf {
namespace {

using Words = std::vector<std::string>;

Words cut(std::vector<CutRule> rules, std::string_view text) {
  std::vector<size_t> ends, spare;
  PreTokenizer{"test", std::move(rules)}.split(text, ends, spare);
  Words words;
  size_t begin = 0;
  for (const size_t end : ends) {
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return words;
}

TEST(CutRule, Gpt2SplitsAsTheReference) {
  EXPECT_EQ(cut({CutRule::gpt2}, "Hello  it's 123, ok\n\n x"),
            (Words{"Hello", " ", " it", "'s", " 123", ",", " ok", "\n\n", " x"}));
  EXPECT_EQ(cut({CutRule::gpt2}, "IT'S"), (Words{"IT", "'", "S"}));
  EXPECT_EQ(cut({CutRule::gpt2}, "a   "), (Words{"a", "   "}));
}

TEST(CutRule, Cl100kAndQwenSplitAsTheReference) {
  EXPECT_EQ(cut({CutRule::cl100k}, "IT'S 1234\t.x \n\n y!\n\n"),
            (Words{"IT", "'S", " ", "123", "4", "\t", ".x", " \n\n", " y", "!\n\n"}));
  EXPECT_EQ(cut({CutRule::qwen2}, "v12"), (Words{"v", "1", "2"}));
  EXPECT_EQ(cut({CutRule::qwen2}, "x'\u017Fy"), (Words{"x", "'\u017F", "y"}));
  EXPECT_EQ(cut({CutRule::cl100k}, "'LLa"), (Words{"'LL", "a"}));
}

TEST(CutRule, TekkenAndO200kSplitByCase) {
  EXPECT_EQ(cut({CutRule::tekken}, "camelCase HTTPServer 42"),
            (Words{"camel", "Case", " HTTPServer", " ", "4", "2"}));
  EXPECT_EQ(cut({CutRule::o200k}, "don't DON'T 1234/\n"), (Words{"don't", " DON'T", " ", "123", "4", "/\n"}));
}

TEST(CutRule, RulesApplyOneAfterTheOther) {
  EXPECT_EQ(cut({CutRule::digits_each, CutRule::gpt2}, "a 12 b"), (Words{"a", " ", "1", "2", " b"}));
  EXPECT_EQ(cut({CutRule::digits_run}, "a12b"), (Words{"a", "12", "b"}));
  EXPECT_EQ(cut({CutRule::ascii_triples}, "12345"), (Words{"123", "45"}));
  EXPECT_EQ(cut({CutRule::punct}, "a=!b`"), (Words{"a", "=!", "b`"}));
  EXPECT_EQ(cut({}, "a b"), (Words{"a b"}));
}

TEST(GgufPre, RefusesAnUnknownNameAndListsTheKnown) {
  EXPECT_EQ(pre_of_gguf("smollm", "f").words.rules, (std::vector{CutRule::digits_each, CutRule::gpt2}));
  EXPECT_TRUE(pre_of_gguf("llama-bpe", "f").whole_words_first);
  try {
    pre_of_gguf("martian", "f.gguf");
    FAIL();
  } catch (const Error& e) {
    for (const char* part : {"f.gguf", "martian", "qwen2", "llama-bpe", "smollm"})
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace sheaf

#include "core/task/prompt_template.h"

#include "tests/errors.h"
#include "tests/fuzz.h"

namespace sheaf {
namespace {

std::string in_braces(std::string_view field) {
  return "{" + std::string(field) + "}";
}

TEST(PromptTemplate, FillsFieldsAndKeepsBraces) {
  const PromptTemplate words("Q: {question}\nJSON {{\"a\": 1}}, {Net weight}, {question}");
  EXPECT_EQ(words.fields(), (std::vector<std::string>{"question", "Net weight"}));
  EXPECT_EQ(words.fill([](std::string_view field) { return field == "question" ? "Why?" : "3 oz"; }),
            "Q: Why?\nJSON {\"a\": 1}, 3 oz, Why?");
  EXPECT_TRUE(PromptTemplate("").fields().empty());
  EXPECT_EQ(PromptTemplate("").fill(in_braces), "");
}

TEST(PromptTemplate, ALineOfEmptyFieldsGoes) {
  const auto empty = [](std::string_view) { return std::string(); };
  EXPECT_EQ(PromptTemplate("Q\n{options}\nA:").fill(empty), "Q\nA:");
  EXPECT_EQ(PromptTemplate("{a}{b}\nA:").fill(empty), "A:");
  EXPECT_EQ(PromptTemplate("Q {options}\nA:").fill(empty), "Q \nA:");
  EXPECT_EQ(PromptTemplate("Q\n\nA:").fill(empty), "Q\n\nA:") << "an empty line without a field stays";
  EXPECT_EQ(PromptTemplate("Q\n{a}{b}\nA").fill([](std::string_view field) {
    return std::string(field == "b", 'b');
  }),
            "Q\nb\nA");
}

TEST(PromptTemplate, SplitsAndSharesItsSpace) {
  auto [before, after] = PromptTemplate("Text:\n\n{document} \n").split("document");
  EXPECT_EQ(before.take_last_space(), "\n\n");
  EXPECT_EQ(before.fill(in_braces), "Text:");
  EXPECT_EQ(after.take_last_space(), " \n");
  EXPECT_EQ(after.fill(in_braces), "");
  PromptTemplate question("\n\n{question} ");
  EXPECT_EQ(question.take_first_space(), "\n\n");
  EXPECT_EQ(question.take_first_space(), "");
  EXPECT_TRUE(question.ends_with_space());
  EXPECT_EQ(
      PromptTemplate("<{number}> {document}").with("number", "1").split("document").first.fields().size(),
      0u);
}

TEST(PromptTemplate, RefusesABraceThatIsNoField) {
  for (const char* text : {"{", "}", "a {} b", "{a", "a} b", "{a{b}", "{a\nb}"})
    expect_refusal([&] { PromptTemplate(text, "job.yaml:3: task.prompt.question"); },
                   {"job.yaml:3: task.prompt.question: the brace at \""});
}

TEST(PromptTemplate, AnyTextIsRefusedOrKeepsItsFields) {
  fuzz([&](std::mt19937_64& random) {
    const std::string text = keep_input(
        mutate("Q: {question}\n{options}\n{{}} {document}", random, {"{", "}", "{{", "}}", "{a}", "\n"}));
    try {
      const PromptTemplate words(text);
      std::string doubled;
      for (const char c :
           words.fill([](std::string_view field) { return "\x01" + std::string(field) + "\x02"; }))
        doubled += c == '\x01'   ? "{"
                   : c == '\x02' ? "}"
                   : c == '{'    ? "{{"
                   : c == '}'    ? "}}"
                                 : std::string(1, c);
      if (text.find_first_of("\x01\x02") == std::string::npos) {
        EXPECT_EQ(doubled, text);
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::input);
    }
  });
}

}  // namespace
}  // namespace sheaf

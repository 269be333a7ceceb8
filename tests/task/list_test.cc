// Everything asked of a record in one prompt, and the numbered list that comes back.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>

#include "core/methods/method.h"
#include "core/task/value.h"
#include "core/tokenizer/read_tokenizer.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {
namespace {

std::vector<std::string> texts(std::string_view list, size_t questions, size_t* beyond = nullptr) {
  size_t more = 0;
  std::vector<std::string> found;
  for (const ListEntry& entry : split_list(list, questions, more))
    found.push_back(entry.count == 1 ? entry.text : fmt::format("<{}>", entry.count));
  if (beyond) *beyond = more;
  return found;
}

TEST(SplitList, FindsEveryNumberOnce) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts("1. red\n2) blue\n 3: green\n", 3), (Texts{" red", " blue", " green"}));
  EXPECT_EQ(texts("1. red\nand so on\n- 2. blue", 2), (Texts{" red", " blue"}));
  EXPECT_EQ(texts("2. blue\n1. red", 2), (Texts{" red", " blue"})) << "in any order";
  EXPECT_EQ(texts("1. red\n1. blue", 2), (Texts{"<2>", "<0>"})) << "twice, and never";
  EXPECT_EQ(texts("", 2), (Texts{"<0>", "<0>"}));
  EXPECT_EQ(texts("1.\n2. 3.5 kg", 2), (Texts{"", " 3.5 kg"}));
  EXPECT_EQ(texts("0. zero\n99999999999999999999. much\n-1. less\n1", 1), (Texts{" less"}));
  size_t beyond = 0;
  EXPECT_EQ(texts("1. red\n2. blue\n4. more\n3. yet", 2, &beyond), (Texts{" red", " blue"}));
  EXPECT_EQ(beyond, 4u);
}

TEST(SplitList, KnowsWhichEntryIsTheLast) {
  size_t beyond = 0;
  const auto entries = split_list("1. red\n2. bl", 3, beyond);
  EXPECT_FALSE(entries[0].last);
  EXPECT_TRUE(entries[1].last);
  EXPECT_FALSE(entries[2].last);
}

class ListTask : public testing::Test {
 protected:
  ListTask() : tokenizer_(read_tokenizer_json(tiny_json({}).dump(), "", "tiny")) {
    job_.method.name = "seqbatch";
    job_.model.path = "tiny";
    questions_.id = 7;
    questions_.document = "Oss is old.";
    questions_.questions = {question(1, "How old?"), question(2, "Where?", {"Oss", "Arn"}),
                            question(3, "Why?")};
    product_.id = 8;
    product_.category = "Tea";
    product_.document = "Arn tea, 2 g";
  }

  std::unique_ptr<Task> task(TaskKind kind) {
    job_.task.kind = kind;
    return make_task(*tokenizer_, chat_template("chatml"), job_, schema_);
  }
  /// What a model wrote after the list's first number.
  Answer wrote(const std::string& text, Ending ending = Ending::end_of_text) const {
    return {ids_of(*tokenizer_, text, false), ending, -2.5};
  }
  static std::vector<std::string> said(const Row& row) {
    std::vector<std::string> all;
    const auto add = [&](const RowAnswer& answer) {
      const auto* text = std::get_if<std::string>(&answer.value);
      all.push_back((text                                                   ? *text
                     : std::holds_alternative<std::nullptr_t>(answer.value) ? "null"
                                                                            : "other") +
                    (answer.note.empty() ? "" : " (" + answer.note + ")"));
    };
    if (const auto* values = std::get_if<ExtractedValues>(&row.content))
      for (const AttributeValue& value : values->values) add(value.answer);
    else
      for (const QuestionAnswer& answer : std::get<std::vector<QuestionAnswer>>(row.content))
        add(answer.answer);
    return all;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  static Attribute attribute(const char* name, const char* description = "",
                             ValueType type = ValueType::text) {
    return {name, description, type, {}};
  }
  static Question question(int id, const char* text, std::vector<std::string> options = {}) {
    return {id, text, std::move(options), {}};
  }

  Schema schema_{{{"Tea",
                   {attribute("Brand", "who makes it"), attribute("Weight", "", ValueType::number),
                    attribute("Kind")}}}};
  Job job_;
  Record questions_, product_;
};

using Texts = std::vector<std::string>;

TEST_F(ListTask, AsksEverythingInOnePrompt) {
  const RecordParts asked = task(TaskKind::ask)->parts(questions_);
  ASSERT_EQ(asked.questions().size(), 1u);
  const std::string text = tokenizer_->decode(asked.questions()[0].tokens, false);
  EXPECT_NE(text.find("1. How old?\n2. Where?\n   A) Oss\n   B) Arn\n"), std::string::npos) << text;
  EXPECT_NE(text.find("3. Why?\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("1.")) << text;
  EXPECT_GE(asked.questions()[0].max_tokens, 3 * job_.method.max_value_tokens);
  const RecordParts extracted = task(TaskKind::extract)->parts(product_);
  ASSERT_EQ(extracted.questions().size(), 1u);
  const std::string head = tokenizer_->decode(extracted.bin->instruction, false);
  EXPECT_NE(head.find("1. Brand: who makes it\n2. Weight (a number)\n3. Kind\n"), std::string::npos) << head;
}

TEST_F(ListTask, SplitsTheListIntoAnswers) {
  const auto ask = task(TaskKind::ask);
  EXPECT_EQ(said(ask->row(questions_, {wrote(" old\n2. B) Arn\n3. null")})), (Texts{"old", "B", "null"}));
  EXPECT_EQ(said(ask->row(questions_, {wrote(" old\n2. Oss\n3. who")})), (Texts{"old", "A", "who"}));
  EXPECT_EQ(said(ask->row(questions_, {wrote(" old\n2. Leith\n2. Oss")})),
            (Texts{"old", "null (the list has number 2 2 times)", "null (the list has no number 3)"}));
  EXPECT_EQ(said(ask->row(questions_, {wrote(" old\n2. Leith\n3. so\n4. more")})),
            (Texts{"old", "null (not one of the options)",
                   "so (the model's list reaches number 4, but only 3 were asked for)"}));
  EXPECT_EQ(said(ask->row(questions_, {wrote(" old\n2. A\n3. beca", Ending::length)})),
            (Texts{"old", "A", "beca (cut at the length limit)"}));
  EXPECT_EQ(said(ask->row(questions_, {})).size(), 3u) << "no answer at all";
}

TEST_F(ListTask, ValuesAreOfTheirAttributesTypes) {
  job_.output.raw = job_.output.logprobs = true;
  const Row row = task(TaskKind::extract)->row(product_, {wrote(" Arn\n2. 2.5\n3. null")});
  const auto& values = std::get<ExtractedValues>(row.content);
  EXPECT_EQ(values.values[0].answer.value, RowValue("Arn"));
  EXPECT_EQ(values.values[1].answer.value, RowValue(2.5));
  EXPECT_EQ(values.values[2].answer.value, RowValue(nullptr));
  EXPECT_EQ(values.raw, " Arn\n2. 2.5\n3. null");
  EXPECT_EQ(values.logprob, -2.5);
  EXPECT_FALSE(values.values[0].answer.logprob) << "one answer holds them all";
}

TEST_F(ListTask, SpansThatTheDocumentDoesNotHoldAreNull) {
  schema_.categories[0].attributes[0].type = schema_.categories[0].attributes[2].type = ValueType::span;
  EXPECT_EQ(said(task(TaskKind::extract)->row(product_, {wrote(" arn\n2. 2\n3. Oss")})),
            (Texts{"Arn", "other", "null (not in the document: \"Oss\")"}));
  job_.method.name = "standard";
  EXPECT_EQ(said(task(TaskKind::extract)
                     ->row(product_, {wrote("\"Brand\": \"Arn tea\", \"Weight\": 2, \"Kind\": \"te\"}")})),
            (Texts{"Arn tea", "other", "null (not in the document: \"te\")"}));
}

TEST_F(ListTask, EveryQuestionHasAnAnswerWhateverIsWritten) {
  const auto ask = task(TaskKind::ask), extract = task(TaskKind::extract);
  std::mt19937 random(7);
  const std::string_view bits[] = {"1",  "2", "3",    "4", ".", ")", ":",
                                   "\n", " ", "null", "A", "x", "-", "\xff"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (auto i = random() % 40; i > 0; --i) text += bits[random() % std::size(bits)];
    const Ending ending = random() % 2 ? Ending::length : Ending::end_of_text;
    for (const std::string& each : said(ask->row(questions_, {wrote(text, ending)})))
      EXPECT_FALSE(each.empty()) << text;
    EXPECT_EQ(said(extract->row(product_, {wrote(text, ending)})).size(), 3u) << text;
  }
}

}  // namespace
}  // namespace sheaf

// Examples: which ones are chosen, and how a prompt shows them.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "core/task/gold.h"
#include "core/tokenizer/read_tokenizer.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {
namespace {

using nlohmann::json;

std::vector<std::string> chosen(const std::vector<std::pair<std::string, std::string>>& all, int32_t most,
                                uint64_t seed) {
  ExampleChoice choice(most, seed);
  for (const auto& [category, document] : all) choice.add(category, {document, {{"Brand", document}}});
  std::vector<std::string> names;
  for (const auto& [category, examples] : choice.take())
    for (const Example& example : examples) names.push_back(category + " " + example.document);
  return names;
}

TEST(ExampleChoice, DependsOnTheSeedAndNotOnTheOrder) {
  std::vector<std::pair<std::string, std::string>> all;
  for (int i = 0; i < 40; ++i) all.emplace_back(i % 4 ? "Tea" : "Cup", fmt::format("number {}", i));
  const auto first = chosen(all, 5, 1);
  ASSERT_EQ(first.size(), 10u);
  std::mt19937_64 random(7);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(all.begin(), all.end(), random);
    EXPECT_EQ(chosen(all, 5, 1), first);
  }
  EXPECT_NE(chosen(all, 5, 2), first);
  EXPECT_TRUE(chosen(all, 0, 1).empty());
  EXPECT_EQ(chosen(all, 100, 1).size(), 40u);
  // Fewer are the first of more.
  const auto fewer = chosen(all, 2, 1);
  EXPECT_EQ(fewer, (std::vector{first[0], first[1], first[5], first[6]}));
}

TEST(ExampleChoice, TakesADocumentOnceWhateverTheOrder) {
  for (const bool turned : {false, true}) {
    ExampleChoice choice(3, 0);
    for (const int value : turned ? std::vector{2, 1} : std::vector{1, 2})
      choice.add("Tea", {"Oak tea", {{"Weight", value}}});
    const auto taken = choice.take();
    ASSERT_EQ(taken.at("Tea").size(), 1u);
    EXPECT_EQ(taken.at("Tea")[0].gold, json({{"Weight", 1}}));
  }
}

class ExamplePrompts : public testing::Test {
 protected:
  ExamplePrompts() : tokenizer_(read_tokenizer_json(tiny_json({}).dump(), "", "tiny")) {
    job_.task.kind = TaskKind::extract;
    job_.task.instruction = "Extract.";
    examples_.by_category["Tea"] = {{"Elm tea", {{"Brand", {"Elm"}}, {"Weight", json::array()}}},
                                    {"Oak bags, 2 g", {{"Weight", 2}, {"Kind", "n/a"}}}};
  }

  std::unique_ptr<Task> task(const char* chat = "chatml") {
    return make_task(*tokenizer_, chat_template(chat), job_, schema_, &examples_);
  }
  static Record record(const std::string& document, const std::string& category = "Tea") {
    Record made;
    made.category = category;
    made.document = document;
    return made;
  }
  /// The whole prompt of an attribute.
  std::string prompt(Task& task, const Record& record, size_t question = 0) {
    RecordParts parts = task.parts(record);
    std::vector<Stack> stacks;
    build_separate({&parts, 1}, stacks);
    return tokenizer_->decode(stacks.at(question).segments.at(0).tokens, false);
  }
  std::string error(const char* chat = "chatml") {
    try {
      task(chat);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  Schema schema_{
      {{"Tea", {{"Brand", ""}, {"Weight", "", ValueType::number}, {"Kind", ""}}}, {"Cup", {{"Size", ""}}}}};
  Job job_;
  Examples examples_;
};

constexpr const char* kHead =
    "<|im_start|>user\nExtract.\n\nAttributes:\n- Brand\n- Weight (a number)\n- Kind\n\nProduct:\n";

TEST_F(ExamplePrompts, AreTurnsBetweenTheInstructionAndTheDocument) {
  const auto made = task();
  EXPECT_EQ(
      prompt(*made, record("Ash tea"), 1),
      std::string(kHead) +
          "Elm tea<|im_end|>\n<|im_start|>assistant\n{\n  \"Brand\": \"Elm\",\n  \"Weight\": "
          "null\n}<|im_end|>\n"
          "<|im_start|>user\nProduct:\nOak bags, 2 g<|im_end|>\n<|im_start|>assistant\n{\n  \"Weight\": 2,\n"
          "  \"Kind\": null\n}<|im_end|>\n<|im_start|>user\nProduct:\nAsh "
          "tea<|im_end|>\n<|im_start|>assistant\n"
          "{\n  \"Weight\":");
  EXPECT_EQ(prompt(*made, record("Cup, 3 oz", "Cup")),
            "<|im_start|>user\nExtract.\n\nAttributes:\n- Size\n\nProduct:\nCup, 3 oz<|im_end|>\n"
            "<|im_start|>assistant\n{\n  \"Size\":");
}

TEST_F(ExamplePrompts, HaveTheFormThatIsDecoded) {
  job_.method.keys = KeyForm::marker;
  EXPECT_NE(prompt(*task(), record("Ash tea"), 2).find("{\n1: \"Elm\",\n2: null\n}<|im_end|>"),
            std::string::npos);
  EXPECT_NE(prompt(*task(), record("Ash tea"), 2).find("{\n2: 2,\n3: null\n}<|im_end|>"), std::string::npos);
  job_.method.keys = KeyForm::name;
  job_.method.name = "standard";
  EXPECT_NE(prompt(*task(), record("Ash tea")).find("{\n  \"Weight\": 2,\n  \"Kind\": null\n}<|im_end|>"),
            std::string::npos);
}

TEST_F(ExamplePrompts, AnEarlierAnswerHasNoThought) {
  const std::string text = prompt(*task("qwen3"), record("Ash tea"));
  EXPECT_NE(text.find("Elm tea<|im_end|>\n<|im_start|>assistant\n{\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Ash tea<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n{\n"),
            std::string::npos)
      << text;
}

TEST_F(ExamplePrompts, ADocumentThatIsAskedAboutIsNotShown) {
  const auto made = task();
  const std::string own = prompt(*made, record("Elm tea"));
  EXPECT_EQ(own.find("Elm\""), std::string::npos) << own;
  EXPECT_NE(own.find("Oak bags, 2 g<|im_end|>"), std::string::npos) << own;
  // Its prompts are not mixed with those of others, and every other record keeps all examples.
  EXPECT_NE(made->bin_name(record("Elm tea")), made->bin_name(record("Oak bags, 2 g")));
  EXPECT_NE(made->bin_name(record("Elm tea")), made->bin_name(record("Ash tea")));
  EXPECT_EQ(made->bin_name(record("Ash tea")), "Tea");
  EXPECT_NE(prompt(*made, record("Ash tea")).find("Elm\""), std::string::npos);
}

TEST_F(ExamplePrompts, AllRecordsOfACategoryShareThem) {
  const auto made = task();
  std::vector<RecordParts> parts{made->parts(record("Ash tea")), made->parts(record("Fir tea"))};
  EXPECT_EQ(parts[0].bin, parts[1].bin);
  std::vector<Stack> stacks;
  make_builder(job_.method).build(parts, stacks);
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_TRUE(stacks[0].segments[0].shared);
  EXPECT_EQ(stacks[0].segments[0].tokens, parts[0].bin->instruction);
}

TEST_F(ExamplePrompts, AreRefusedWhereTheyCannotWork) {
  EXPECT_EQ(error("llama2"),
            "task.examples: the chat template llama2 supports only one turn, and each example is a turn; set "
            "model.chat to a template with several turns, or leave out task.examples");
  job_.method.name = "seqbatch";
  EXPECT_EQ(error(),
            "task.examples does not work with method.name seqbatch; use hpd, separate, standard or prefix");
  job_.method.name = "hpd";
  job_.method.stacking = Stacking::joint;
  EXPECT_EQ(error(), "task.examples works only with method.stacking isolated, not with joint");
}

TEST_F(ExamplePrompts, TooManyAreRefusedWithTheNumberThatFits) {
  for (int i = 0; i < 30; ++i)
    examples_.by_category["Tea"].push_back({fmt::format("Tea {}", i), {{"Brand", "Ash"}}});
  job_.method.prompt_tokens = 2000;
  const std::string message = error();
  const std::string before = "set task.examples.per_category to at most ";
  ASSERT_NE(message.find(before), std::string::npos) << message;
  EXPECT_NE(message.find("in a prompt of 2000 (method.prompt_tokens)"), std::string::npos) << message;
  const int fitting = std::stoi(message.substr(message.find(before) + before.size()));
  auto& shown = examples_.by_category["Tea"];
  shown.resize(static_cast<size_t>(fitting) + 1);
  EXPECT_NE(error(), "no error");
  shown.pop_back();
  EXPECT_EQ(error(), "no error");
  examples_.positions = 190;
  EXPECT_NE(
      error().find("in the 190 positions of the model; leave out task.examples, or use a model with a longer "
                   "context"),
      std::string::npos)
      << error();
}

}  // namespace
}  // namespace sheaf

// A prompt is tokenized part by part. Its tokens are those of its whole text with real tokenizers.
#include <algorithm>
#include <gtest/gtest.h>

#include "core/methods/method.h"
#include "io/model/model_files.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

struct Case {
  const char* tokenizer;
  const char* chat;
};

class PartBoundaries : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (std::string_view(GetParam().tokenizer) == test::kDefaultModel) {
      NEED_MODEL();
    } else {
      NEED_SHARED(GetParam().tokenizer);
    }
    tokenizer_ = load_tokenizer(GetParam().tokenizer).tokenizer;
  }

  /// The prompts of the record, each as the tokens of all its parts, against those of its text.
  void expect_whole(const Job& job, const Record& record, const Schema& schema = {},
                    const Examples* examples = nullptr) {
    const auto task = make_task(*tokenizer_, chat_template(GetParam().chat), job, schema, examples);
    EXPECT_TRUE(task->notices().empty()) << task->notices().front();
    RecordParts parts = task->parts(record);
    std::vector<Stack> stacks;
    make_separate_builder(job.method).build({&parts, 1}, stacks);
    ASSERT_FALSE(stacks.empty());
    for (const Stack& stack : stacks) {
      // Of chains, the first chain: the instruction and the question.
      Tokens tokens;
      std::vector<Sight> sees = stack.segments.back().sees;
      sees.push_back({static_cast<SegmentId>(stack.segments.size() - 1)});
      for (const Sight& sight : sees)
        append(tokens, stack.segments[static_cast<size_t>(sight.segment)].tokens);
      Tokens again;
      tokenizer_->encode(tokenizer_->decode(tokens, false), true, again);
      EXPECT_EQ(tokens, again) << tokenizer_->decode(tokens, false);
    }
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

Schema backpacks() {
  return {{{"Backpack",
            {{"Brand", ""},
             {"Net content", "with its unit"},
             {"Wasserdicht ä", "", ValueType::enumeration, {"ja", "nein"}}}}}};
}

Record backpack() {
  Record record;
  record.category = "Backpack";
  record.document =
      "Rowan & Pike Sketchbook Mini Backpack, Vegan Leather, Sage Green, 7 L\nBig enough for a tablet.";
  return record;
}

TEST_P(PartBoundaries, ExtractionPromptsHaveTheTokensOfTheirText) {
  Job job;
  job.task.kind = TaskKind::extract;
  for (const char* method : {"hpd", "separate", "standard"}) {
    job.method.name = method;
    expect_whole(job, backpack(), backpacks());
  }
  job.method.name = "hpd";
  job.method.keys = KeyForm::marker;
  expect_whole(job, backpack(), backpacks());
}

TEST_P(PartBoundaries, PromptsWithExamplesHaveTheTokensOfTheirText) {
  if (chat_template(GetParam().chat).answer_close.empty()) return;
  Examples examples;
  examples.by_category["Backpack"] = {
      {"Oak & Elm rucksack, 20 L.",
       {{"Brand", "Oak & Elm"}, {"Net content", "20 L"}, {"Wasserdicht ä", "ja"}}},
      {"(no name)", {{"Brand", nullptr}}}};
  Job job;
  job.task.kind = TaskKind::extract;
  for (const char* method : {"hpd", "standard"}) {
    job.method.name = method;
    expect_whole(job, backpack(), backpacks(), &examples);
  }
  job.method.name = "hpd";
  job.method.keys = KeyForm::marker;
  expect_whole(job, backpack(), backpacks(), &examples);
}

TEST_P(PartBoundaries, QuestionPromptsHaveTheTokensOfTheirText) {
  Job job;
  job.task.kind = TaskKind::ask;
  Record record;
  record.document = "The keeper lights the lamp at dusk. Ships pass (few of them).";
  record.questions.resize(2);
  record.questions[0].text = "What does the keeper light?";
  record.questions[1].text = "Who passes?";
  record.questions[1].options = {"ships", "nobody."};
  for (const char* method : {"ippd", "parallel-prompting", "seqbatch"}) {
    job.method.name = method;
    expect_whole(job, record);
  }
  job.method.name = "pced";
  record.documents = {record.document, "2 lamps."};
  for (Question& question : record.questions) question.relevance = {0.5, 0.5};
  expect_whole(job, record);
}

INSTANTIATE_TEST_SUITE_P(RealTokenizers, PartBoundaries,
                         testing::Values(Case{test::kDefaultModel, "smollm2"},
                                         Case{"../shared/tokenizers/qwen3", "qwen3"},
                                         Case{"../shared/tokenizers/llama3", "llama3.1"},
                                         Case{"../shared/tokenizers/qwen3", "plain"},
                                         Case{test::kDefaultModel, "plain"}),
                         [](const testing::TestParamInfo<Case>& each) {
                           const std::filesystem::path tokenizer = each.param.tokenizer;
                           std::string name = tokenizer.stem().string() + "_" + each.param.chat;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST(PartBoundary, ATemplateThatMergesTokensAcrossPartsIsNoticed) {
  const std::string path = "../shared/tokenizers/qwen3";
  NEED_SHARED(path);
  const auto tokenizer = load_tokenizer(path).tokenizer;
  Job job;
  job.task.kind = TaskKind::extract;
  // The user's turn ends with a line break, which this tokenizer joins with the mark before it.
  const auto notices = make_task(*tokenizer, chat_template("olmo2"), job, backpacks())->notices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("\"A pen, 7 in.\" and \"\\n<|assistan"), std::string::npos) << notices[0];
}

}  // namespace
}  // namespace sheaf

// Values that are copied from documents, decoded: the same in every packing, and always of their document.
#include <gtest/gtest.h>

#include "core/methods/method.h"
#include "core/plan/planner.h"
#include "core/task/record_row.h"
#include "cpu/cpu_backend.h"
#include "tests/engine/decode.h"
#include "tests/engine/delayed_backend.h"
#include "tests/made_up_tokenizer.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

Schema make_schema() {
  return {{{"Tea",
            {{"Brand", "", ValueType::span},
             {"Kind", "", ValueType::enumeration, {"green", "black"}},
             {"Notes", "", ValueType::text},
             {"Origin", "", ValueType::span}}}}};
}

struct Copying {
  explicit Copying(uint32_t seed) : random(seed) {
    for (int i = 0; i < 5; ++i) {
      Record record;
      record.id = i;
      record.category = "Tea";
      record.document = test::random_document(random, 4 + static_cast<int>(random() % 12));
      text += record.document;
      records.push_back(std::move(record));
    }
    tokenizer.emplace(test::random_tokenizer(random, text, 200));
    model = test::make_random_model({.vocab = tokenizer->vocab_size()}, seed);
    job.task.kind = TaskKind::extract;
    job.method.name = "hpd";
    job.method.max_value_tokens = 12;
  }

  test::Answers decode(Backend& backend, const Builder& builder, EngineOptions options) {
    const auto task = make_task(*tokenizer, chat_template("plain"), job, schema);
    std::vector<RecordParts> parts;
    for (ReadyRecord& ready : make_ready(*task, records)) {
      EXPECT_EQ(ready.refused, "");
      ready.parts.record = static_cast<int32_t>(parts.size());
      parts.push_back(std::move(ready.parts));
    }
    std::vector<Stack> stacks;
    builder.build(parts, stacks);
    test::Answers answers = test::decode(backend, std::move(stacks), options);
    check(*task, answers);
    return answers;
  }

  /// Every copied value stands in its document.
  void check(const Task& task, const test::Answers& answers) {
    for (size_t i = 0; i < records.size(); ++i) {
      Outcome outcome;
      for (int32_t q = 0; q < 4; ++q) outcome.answers.push_back(answers.at({static_cast<int32_t>(i), q}));
      Job::Output output;
      output.spans = true;
      const Row row = record_row(task, records[i], outcome, output);
      for (const size_t q : {size_t{0}, size_t{3}}) {
        const RowAnswer& answer = std::get<ExtractedValues>(row.content).values[q].answer;
        EXPECT_NE(outcome.answers[q].ending, Ending::delimiter);
        const auto* value = std::get_if<std::string>(&answer.value);
        if (!value) continue;
        EXPECT_NE(records[i].document.find(*value), std::string::npos) << *value;
        ASSERT_TRUE(answer.spans->at(0)) << *value;
        ++copied;
      }
    }
  }

  std::mt19937 random;
  std::string text;
  std::vector<Record> records;
  std::optional<test::MadeUpTokenizer> tokenizer;
  Model model;
  Job job;
  Schema schema = make_schema();
  int copied = 0;
};

TEST(Spans, AreTheSameInEveryPacking) {
  int copied = 0;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    Copying copying(seed);
    copying.job.method.options = OptionChoice::greedy;
    const auto backend = make_reference_backend(copying.model);
    const auto quick = make_quick_backend(copying.model, 2);
    for (const float temperature : {0.0f, 1.5f}) {
      const EngineOptions options{
          .tokens_per_step = 64, .pages = 4000, .temperature = temperature, .seed = seed};
      EngineOptions small = options;
      small.tokens_per_step = 9;
      const auto wanted = copying.decode(*backend, make_separate_builder(copying.job.method), options);
      const Builder packed = make_builder(copying.job.method);
      test::expect_same(wanted, copying.decode(*backend, packed, options), "packed");
      test::Delayed delayed(*backend, 2, test::When::at_finish);
      test::expect_same(wanted, copying.decode(delayed, packed, small), "two steps at once");
      test::expect_same(copying.decode(*quick, make_separate_builder(copying.job.method), options),
                        copying.decode(*quick, packed, small), "quick kernels");
    }
    copied += copying.copied;
  }
  EXPECT_GT(copied, 100);
}

TEST(Spans, OfEveryMethod) {
  int copied = 0;
  for (uint32_t seed = 10; seed < 14; ++seed) {
    for (const ValueSight values : {ValueSight::independent, ValueSight::positional})
      for (const Stacking stacking : {Stacking::isolated, Stacking::joint}) {
        Copying copying(seed);
        copying.job.method.options = OptionChoice::greedy;
        copying.job.method.values = values;
        copying.job.method.stacking = stacking;
        const auto backend = make_reference_backend(copying.model);
        copying.decode(*backend, make_builder(copying.job.method),
                       {.tokens_per_step = 64, .pages = 4000, .temperature = seed % 2 ? 1.0f : 0.0f});
        copied += copying.copied;
      }
  }
  EXPECT_GT(copied, 30);
}

TEST(Spans, OfASplitDocumentStandInItsParts) {
  Copying copying(3);
  copying.job.input.too_long = TooLong::split;
  const auto task = make_task(*copying.tokenizer, chat_template("plain"), copying.job, copying.schema);
  Record record = copying.records[0];
  record.document = "first";
  for (int i = 0; i < 60; ++i) record.document += fmt::format(" w{}x", i);
  record.document += " last";
  const RecordParts parts = task->parts(record);
  Planner planner(make_builder(copying.job.method),
                  {static_cast<int32_t>(parts.bin->instruction.size() + parts.document.size() / 2 + 100),
                   100000, [](const Stack&) { return true; }, TooLong::split});
  const Plan plan = planner.plan(make_ready(*task, {&record, 1}));
  ASSERT_TRUE(plan.refused.empty()) << plan.refused[0].second;
  ASSERT_GT(plan.records[0].parts, 1);
  const auto takes = [&](const Slot& slot, const std::string& word) {
    AllowedAnswers::Node node = AllowedAnswers::root;
    for (const char c : " \"" + word + "\"") {
      const TokenId token = *copying.tokenizer->find({&c, 1});
      if (!std::ranges::binary_search(slot.allowed->allowed(node), token)) return false;
      node = slot.allowed->advance(node, token);
    }
    return node < 0;
  };
  int32_t first = 0, last = 0, neither = 0;
  for (const Stack& stack : plan.stacks)
    for (const Slot& slot : stack.slots) {
      if (slot.question % 4 != 0) continue;
      const bool begins = takes(slot, "first"), ends = takes(slot, "last");
      EXPECT_EQ(begins, slot.question == 0);
      first += begins;
      last += ends;
      neither += !begins && !ends;
      EXPECT_FALSE(begins && ends);
    }
  EXPECT_EQ(first, 1);
  EXPECT_EQ(last, 1);
  EXPECT_EQ(neither, plan.records[0].parts - 2);
}

}  // namespace
}  // namespace sheaf

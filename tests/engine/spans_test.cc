// Values that are copied from documents, decoded: the same in every packing, and always of their document.
#include <gtest/gtest.h>

#include "core/methods/method.h"
#include "core/plan/planner.h"
#include "core/segments/allowed_answers.h"
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

TEST(Spans, EveryMethodCopiesFromTheDocument) {
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

/// Leaves out the space that a text begins with, as SentencePiece does.
class SpaceDropper : public test::MadeUpTokenizer {
 public:
  explicit SpaceDropper(MadeUpTokenizer other) : MadeUpTokenizer(std::move(other)) {}

  std::string decode(std::span<const TokenId> ids, bool skip_special) const override {
    const std::string text = MadeUpTokenizer::decode(ids, skip_special);
    return text.starts_with(' ') ? text.substr(1) : text;
  }
};

/// Reads all letters as small ones.
class Lowerer : public test::MadeUpTokenizer {
 public:
  explicit Lowerer(MadeUpTokenizer other) : MadeUpTokenizer(std::move(other)) {}

  void encode(std::string_view text, bool parse_special, Tokens& out) const override {
    std::string low(text);
    for (char& c : low) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    MadeUpTokenizer::encode(low, parse_special, out);
  }
};

/// A long document, planned with a model that has positions for half of it.
struct Splitting {
  Splitting(const test::MadeUpTokenizer& used, const std::string& first, Copying& copying) : tokenizer(used) {
    copying.job.input.too_long = TooLong::split;
    task = make_task(used, chat_template("plain"), copying.job, copying.schema);
    record = copying.records[0];
    record.document = first;
    for (int i = 0; i < 60; ++i) record.document += fmt::format(" w{}x", i);
    record.document += " last";
    const RecordParts parts = task->parts(record);
    positions = static_cast<int32_t>(parts.bin->instruction.size() + parts.document.size() / 2 + 100);
    plan = make_plan(TooLong::split, make_ready(*task, {&record, 1}), copying.job);
  }

  Plan make_plan(TooLong too_long, std::vector<ReadyRecord> ready, const Job& job) const {
    Planner planner(make_builder(job.method),
                    {positions, 100000, [](const Stack&) { return true; }, too_long});
    return planner.plan(std::move(ready));
  }

  /// The slots of the first attribute, part by part.
  std::vector<Slot> brands() const {
    std::vector<Slot> slots;
    for (const Stack& stack : plan.stacks)
      for (const Slot& slot : stack.slots)
        if (slot.question % 4 == 0) slots.push_back(slot);
    return slots;
  }

  bool takes(const Slot& slot, const std::string& word) const {
    AllowedAnswers::Node node = AllowedAnswers::root;
    for (const char c : " \"" + word + "\"") {
      const TokenId token = *tokenizer.find({&c, 1});
      if (!std::ranges::binary_search(slot.allowed->allowed(node), token)) return false;
      node = slot.allowed->advance(node, token);
    }
    return node < 0;
  }

  void check_parts() const {
    ASSERT_TRUE(plan.refused.empty()) << plan.refused[0].second;
    const std::vector<Slot> slots = brands();
    ASSERT_EQ(std::ssize(slots), plan.records[0].outcome.parts);
    ASSERT_GT(slots.size(), 1u);
    for (size_t i = 0; i < slots.size(); ++i) {
      EXPECT_EQ(takes(slots[i], "first"), i == 0);
      EXPECT_EQ(takes(slots[i], "last"), i + 1 == slots.size());
    }
    for (int i = 0; i < 60; ++i)
      EXPECT_TRUE(std::ranges::any_of(slots, [&](const Slot& slot) {
        return takes(slot, "w" + std::to_string(i) + "x");
      })) << i;
  }

  const test::MadeUpTokenizer& tokenizer;
  std::unique_ptr<Task> task;
  Record record;
  int32_t positions = 0;
  Plan plan;
};

TEST(Spans, OfASplitDocumentLieInItsParts) {
  Copying copying(3);
  Splitting(*copying.tokenizer, "first", copying).check_parts();
}

TEST(Spans, OfASplitDocumentThatBeginsWithASpace) {
  Copying copying(3);
  const SpaceDropper tokenizer(*copying.tokenizer);
  for (const char* first : {"first", " first", "  first"}) Splitting(tokenizer, first, copying).check_parts();
}

TEST(Spans, PartsWhosePlaceIsNotKnownShareTheirAnswers) {
  Copying copying(3);
  const Lowerer tokenizer(*copying.tokenizer);
  const Splitting splitting(tokenizer, "First", copying);
  const std::vector<Slot> slots = splitting.brands();
  ASSERT_GT(slots.size(), 1u);
  for (const Slot& slot : slots) {
    EXPECT_EQ(slot.allowed, slots[0].allowed);
    EXPECT_TRUE(splitting.takes(slot, "First"));
    EXPECT_TRUE(splitting.takes(slot, "last"));
  }
}

TEST(Spans, AnswersAreBuiltOnlyForDocumentsInPrompts) {
  Copying copying(3);
  const Splitting splitting(*copying.tokenizer, "first", copying);
  int made = 0;
  const auto plan = [&](const Record& record, TooLong too_long) {
    std::vector<ReadyRecord> ready = make_ready(*splitting.task, {&record, 1});
    ready[0].parts.copies = std::make_shared<LateAnswers>([&made] {
      ++made;
      return std::make_unique<AnswerTrie>(std::vector<Tokens>{{1}}, -1);
    });
    return splitting.make_plan(too_long, std::move(ready), copying.job);
  };
  EXPECT_EQ(plan(splitting.record, TooLong::refuse).refused.size(), 1u);
  EXPECT_EQ(made, 0);
  EXPECT_GT(plan(splitting.record, TooLong::split).records[0].outcome.parts, 1);
  EXPECT_EQ(made, 0) << "its parts have answers of their own";
  EXPECT_EQ(plan(copying.records[1], TooLong::refuse).refused.size(), 0u);
  EXPECT_EQ(made, 1) << "once for both attributes, before they are decoded";
}

}  // namespace
}  // namespace sheaf

// Method map-reduce: two rounds in the engine against prompts that are decoded one by one.
#include <gtest/gtest.h>

#include "cpu/cpu_backend.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::Answers, test::decode, test::expect_same, test::make_random_model;

std::vector<RecordParts> random_rows(uint32_t seed, bool each, int32_t records = 6) {
  auto rows = test::make_random_records(
      {.records = records, .questions = 3, .max_tokens = 6, .own_questions = seed % 2 == 0}, seed);
  test::add_random_chains(rows, 5, 10, seed);
  test::add_random_findings(rows, 7, each, seed);
  return rows;
}

Answers run(const Model& model, const std::vector<RecordParts>& records, bool shared,
            const EngineOptions& options, EngineStats* stats = nullptr, int interrupt_every = 0) {
  std::vector<Stack> stacks;
  build_map_reduce(records, shared, stacks);
  const auto backend = make_quick_backend(model, 1);
  return decode(*backend, std::move(stacks), options, stats, interrupt_every);
}

/// The answer to one prompt, decoded with nothing beside it.
Answer decode_alone(const Model& model, Tokens prompt, const QuestionParts& asked, uint64_t stream) {
  Stack stack;
  append(prompt, asked.tokens);
  Slot slot;
  slot.prompt = slot.answer = stack.add({Role::question, std::move(prompt), 0, {}, false});
  slot.max_tokens = asked.max_tokens;
  slot.stop = asked.stop;
  slot.stream = stream;
  stack.slots.push_back(slot);
  const auto backend = make_quick_backend(model, 1);
  return decode(*backend, {std::move(stack)}, {.tokens_per_step = 64, .pages = 500}).begin()->second;
}

TEST(MapReduce, EqualsOnePromptPerDocumentAndALastOne) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const bool each = seed % 3 > 0;
    const Model model = make_random_model({}, 700 + seed);
    const auto records = random_rows(seed, each);
    Answers wanted;
    for (const RecordParts& record : records)
      for (size_t q = 0; q < record.questions().size(); ++q) {
        std::vector<Tokens> found;
        for (const DocumentParts& document : record.documents) {
          Tokens prompt = record.findings->instruction;
          append(prompt, document.tokens);
          found.push_back(decode_alone(model, prompt, record.findings->asked[each ? q : 0], 0).tokens);
        }
        Tokens prompt = record.bin->instruction;
        append(prompt, record.findings->document(found));
        append(prompt, record.bin->opening);
        wanted[{record.record, static_cast<int32_t>(q)}] =
            decode_alone(model, prompt, record.questions()[q], 0);
      }
    EngineStats stats;
    expect_same(wanted, run(model, records, true, {.tokens_per_step = 64, .pages = 900}, &stats),
                fmt::format("seed {}", seed));
    size_t findings = 0;
    for (const RecordParts& record : records) findings += record.documents.size() * (each ? 3 : 1);
    EXPECT_EQ(stats.answers, 18);
    EXPECT_EQ(stats.first_answers, static_cast<int64_t>(findings));
    EXPECT_GE(stats.first_tokens, stats.first_answers);
    EXPECT_GT(stats.answer_tokens, stats.first_tokens);
  }
}

TEST(MapReduce, DoesNotDependOnStepsPagesSharingOrInterruptions) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const Model model = make_random_model({}, 800 + seed);
    const auto records = random_rows(seed, seed % 2 == 0);
    const float temperature = seed > 3 ? 1.0f : 0.0f;
    EngineStats alone_stats;
    const Answers alone =
        run(model, records, false,
            {.tokens_per_step = 64, .pages = 900, .temperature = temperature, .seed = 3}, &alone_stats);
    EXPECT_EQ(alone_stats.alone_tokens, alone_stats.tokens());
    for (const auto& [rows, page, stop] : {std::tuple{200, 16, 0}, {7, 4, 3}, {1, 1, 50}, {13, 8, 1}}) {
      EngineStats stats;
      expect_same(alone,
                  run(model, records, true,
                      {.tokens_per_step = rows,
                       .pages = 4000,
                       .page_size = page,
                       .temperature = temperature,
                       .seed = 3},
                      &stats, stop),
                  fmt::format("seed {}, {} rows, pages of {}", seed, rows, page));
      EXPECT_EQ(stats.alone_tokens, alone_stats.tokens());
      EXPECT_LT(stats.tokens(), alone_stats.tokens());
    }
  }
}

TEST(MapReduce, QuestionsThatAreKnownAreAskedInNeitherRound) {
  const Model model = make_random_model({}, 900);
  for (const bool each : {false, true}) {
    auto records = random_rows(4, each, 2);
    const Answers all = run(model, records, true, {.tokens_per_step = 64, .pages = 900});
    records[0].known = {true, false, true};
    EngineStats stats;
    const Answers some = run(model, records, true, {.tokens_per_step = 64, .pages = 900}, &stats);
    ASSERT_EQ(some.size(), 4u);
    for (const auto& [key, answer] : some) EXPECT_EQ(answer.tokens, all.at(key).tokens);
    EXPECT_EQ(stats.first_answers, static_cast<int64_t>(records[0].documents.size() +
                                                        records[1].documents.size() * (each ? 3 : 1)));
  }
}

TEST(MapReduce, LastPromptsAreDecodedBesideTheFirstOnesOfOtherRecords) {
  const Model model = make_random_model({}, 901);
  std::vector<Stack> stacks;
  build_map_reduce(random_rows(6, true, 40), true, stacks);
  const auto backend = make_quick_backend(model, 1);
  const StopRules rules(61, {});
  Engine engine(*backend, rules, {.tokens_per_step = 48, .pages = 4000});
  size_t taken = 0, done = 0, done_early = 0;
  engine.run(
      [&]() -> std::optional<Stack> {
        if (taken == stacks.size()) return std::nullopt;
        done_early = done;
        return std::move(stacks[taken++]);
      },
      [&](Stack&&, std::vector<Answer>&&) { ++done; });
  EXPECT_EQ(done, 40u);
  EXPECT_GT(done_early, 30u) << "when the last record was begun, most others should have been complete";
  EXPECT_GT(engine.stats().tokens(), engine.stats().steps * 48 * 8 / 10) << "steps should be nearly full";
}

}  // namespace
}  // namespace sheaf

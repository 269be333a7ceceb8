// Lists of objects: the rounds about their entries against prompts that are decoded one by one.
#include <gtest/gtest.h>

#include "cpu/cpu_backend.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

using test::Answers, test::decode, test::expect_same, test::make_random_model;

constexpr size_t kMostEntries = 3;

/// Questions about entries that are named by the first tokens of an answer, no token twice.
std::shared_ptr<const EntryParts> random_entries(std::mt19937& random, int depth) {
  auto parts = std::make_shared<EntryParts>();
  parts->most_entries = kMostEntries;
  const Tokens before = test::random_part(random, 5, 61);
  parts->most_tokens = before.size() + 1;
  parts->entries = [before](const Tokens& answer) {
    std::vector<Tokens> entries;
    for (const TokenId token : answer) {
      Tokens opened = before;
      opened.push_back(token);
      if (token % 2 == 0 && entries.size() < kMostEntries &&
          std::ranges::find(entries, opened) == entries.end())
        entries.push_back(opened);
    }
    return entries;
  };
  for (int q = 0; q < 3; ++q) {
    QuestionParts question;
    question.tokens = test::random_part(random, 4, 61);
    question.max_tokens = 5;
    if (q == 1 && depth > 1) question.entries = random_entries(random, depth - 1);
    if (q == 2)  // the likeliest of three
      question.allowed = std::make_shared<AnswerTrie>(std::vector<Tokens>{{5, 6}, {11}, {20, 21}}, 0, true);
    parts->questions.push_back(std::move(question));
  }
  return parts;
}

/// Records with three questions each, two of which list entries; `depth`: of lists in entries.
std::vector<RecordParts> random_rows(uint32_t seed, int depth) {
  auto records = test::make_random_records({.records = 6, .questions = 3, .max_tokens = 8}, seed);
  std::mt19937 random(seed);
  auto bin = std::make_shared<BinParts>(*records[0].bin);
  bin->questions[0].entries = random_entries(random, depth);
  bin->questions[2].entries = random_entries(random, depth);
  for (RecordParts& record : records) record.bin = bin;
  return records;
}

std::vector<Stack> stacks_of(const std::vector<RecordParts>& records, bool shared, size_t together) {
  std::vector<Stack> stacks;
  for (size_t first = 0; first < records.size(); first += together) {
    const auto group = std::span(records).subspan(first, together);
    const size_t before = stacks.size();
    shared ? build_tree(group, stacks) : build_separate(group, stacks);
    for (size_t i = before; i < stacks.size(); ++i) ask_entries(stacks[i], group, false);
  }
  return stacks;
}

void expect_same_inner(const Answer& a, const Answer& b, const std::string& what) {
  ASSERT_EQ(a.inner.size(), b.inner.size()) << what;
  for (size_t i = 0; i < a.inner.size(); ++i) {
    EXPECT_EQ(a.inner[i].entry, b.inner[i].entry) << what;
    EXPECT_EQ(a.inner[i].field, b.inner[i].field) << what;
    EXPECT_EQ(a.inner[i].answer.tokens, b.inner[i].answer.tokens) << what;
    EXPECT_EQ(a.inner[i].answer.ending, b.inner[i].answer.ending) << what;
    EXPECT_EQ(a.inner[i].answer.logprob, b.inner[i].answer.logprob) << what << ": not the same to the bit";
    expect_same_inner(a.inner[i].answer, b.inner[i].answer, what);
  }
}

void expect_same_rounds(const Answers& a, const Answers& b, const std::string& what) {
  expect_same(a, b, what);
  for (const auto& [key, answer] : a) expect_same_inner(answer, b.at(key), what);
}

/// The answer to one prompt, decoded with nothing beside it.
Answer decode_alone(Backend& backend, const Tokens& prompt, const QuestionParts& asked) {
  Stack stack;
  Slot slot;
  slot.max_tokens = asked.max_tokens;
  slot.stop = asked.stop;
  slot.allowed = asked.allowed;
  Tokens tokens = prompt;
  append(tokens, asked.tokens);
  add_slot(stack, slot, asked.list(), stack.add({Role::question, std::move(tokens), 0, {}, false}));
  const StopRules rules(backend.config().vocab, {3, 7});
  Engine engine(backend, rules, {.tokens_per_step = 64, .pages = 500});
  bool given = false;
  Answer answer;
  engine.run(
      [&]() -> std::optional<Stack> {
        return std::exchange(given, true) ? std::nullopt : std::optional(stack);
      },
      [&](Stack&& done, std::vector<Answer>&& got) { answer = take_likeliest(done.slots, got); });
  return answer;
}

/// Decodes the entries of an answer one prompt after the other. Returns how many answers that gave.
int64_t decode_inner(Backend& backend, const Tokens& before, const QuestionParts& asked, Answer& answer) {
  int64_t count = 0;
  if (!asked.entries) return count;
  const std::vector<Tokens> entries = asked.entries->entries(answer.tokens);
  for (size_t entry = 0; entry < entries.size(); ++entry)
    for (size_t q = 0; q < asked.entries->questions.size(); ++q) {
      const QuestionParts& question = asked.entries->questions[q];
      Tokens prompt = before;
      append(prompt, entries[entry]);
      Answer inner = decode_alone(backend, prompt, question);
      count += 1 + decode_inner(backend, prompt, question, inner);
      answer.inner.push_back({static_cast<int32_t>(entry), static_cast<int32_t>(q), std::move(inner)});
    }
  return count;
}

TEST(Entries, EqualOnePromptForEachValue) {
  int64_t entries = 0;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const Model model = make_random_model({}, 900 + seed);
    const auto backend = make_quick_backend(model, 1);
    const auto records = random_rows(seed, 1 + static_cast<int>(seed % 3));
    Answers wanted;
    int64_t inner = 0;
    for (const RecordParts& record : records)
      for (size_t q = 0; q < record.questions().size(); ++q) {
        Tokens prompt = record.bin->instruction;
        for (const Tokens* part : {&record.document, &record.bin->opening}) append(prompt, *part);
        Answer answer = decode_alone(*backend, prompt, record.questions()[q]);
        inner += decode_inner(*backend, prompt, record.questions()[q], answer);
        wanted[{record.record, static_cast<int32_t>(q)}] = std::move(answer);
      }
    entries += inner;
    EngineStats stats;
    expect_same_rounds(
        wanted, decode(*backend, stacks_of(records, true, 3), {.tokens_per_step = 64, .pages = 4000}, &stats),
        fmt::format("seed {}", seed));
    EXPECT_EQ(stats.answers, 18 + inner);
    EXPECT_EQ(stats.entry_answers, inner);
    EXPECT_EQ(stats.first_answers, 0);
    EXPECT_EQ(stats.entry_tokens > 0, inner > 0);
  }
  EXPECT_GT(entries, 100);
}

TEST(Entries, DoNotDependOnStepsPagesSharingOrInterruptions) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Model model = make_random_model({}, 950 + seed);
    const auto backend = make_quick_backend(model, 1);
    const auto records = random_rows(seed, 2);
    // Options are scored only at temperature 0.
    const EngineOptions usual{.tokens_per_step = 64, .pages = 4000};
    EngineStats alone_stats;
    const Answers alone = decode(*backend, stacks_of(records, false, 1), usual, &alone_stats);
    for (const auto& [rows, page, stop] : {std::tuple{200, 16, 0}, {7, 4, 3}, {1, 1, 50}, {13, 8, 1}}) {
      EngineStats stats;
      expect_same_rounds(alone,
                         decode(*backend, stacks_of(records, true, 2),
                                {.tokens_per_step = rows, .pages = 8000, .page_size = page}, &stats, stop),
                         fmt::format("seed {}, {} rows, pages of {}", seed, rows, page));
      EXPECT_EQ(stats.answers, alone_stats.answers);
      EXPECT_LT(stats.tokens(), alone_stats.tokens());
    }
  }
}

/// The keys of an entry are one chain behind it, as those of a document are behind the document.
TEST(Entries, InARowEqualAChainBehindEachEntry) {
  int64_t compared = 0;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Model model = make_random_model({}, 970 + seed);
    const auto backend = make_quick_backend(model, 1);
    const auto records = random_rows(seed, 1);
    std::vector<Stack> stacks;
    for (size_t first = 0; first < records.size(); first += 3) {
      const auto group = std::span(records).subspan(first, 3);
      build_positional(group, false, stacks);
      ask_entries(stacks.back(), group, true);
    }
    for (const auto& [key, answer] : decode(*backend, stacks, {.tokens_per_step = 64, .pages = 4000})) {
      const RecordParts& record = records[static_cast<size_t>(key.first)];
      const auto& parts = record.bin->questions[static_cast<size_t>(key.second)].entries;
      if (!parts) continue;
      const std::vector<Tokens> opened = parts->entries(answer.tokens);
      ASSERT_EQ(answer.inner.size(), opened.size() * parts->questions.size());
      for (const InnerAnswer& inner : answer.inner) {
        RecordParts alone = record;
        append(alone.document, record.bin->opening);
        auto bin = std::make_shared<BinParts>(*record.bin);
        bin->opening = opened[static_cast<size_t>(inner.entry)];
        bin->questions = parts->questions;
        alone.bin = bin;
        std::vector<Stack> chain;
        build_positional({&alone, 1}, false, chain);
        const Answers wanted = decode(*backend, chain, {.tokens_per_step = 64, .pages = 4000});
        const Answer& same = wanted.at({key.first, inner.field});
        EXPECT_EQ(inner.answer.tokens, same.tokens) << "seed " << seed;
        EXPECT_EQ(inner.answer.logprob, same.logprob) << "seed " << seed << ": not the same to the bit";
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 50);
}

/// The longest round holds as many entries as there may be, and those inside of them.
TEST(Entries, TheLongestRoundsHoldAllEntries) {
  const auto records = random_rows(1, 2);
  const std::vector<Stack> stacks = stacks_of(records, true, 6);
  ASSERT_EQ(stacks.size(), 1u);
  const Stack second = stacks[0].next->longest();
  // Two lists of six records: 3 entries with two plain questions, one of them with 3 options.
  EXPECT_EQ(second.slots.size(), 6u * 2 * 3 * (1 + 1 + 3));
  ASSERT_TRUE(second.next);
  EXPECT_EQ(second.next->longest().slots.size(), 6u * 2 * 3 * 3 * (1 + 1 + 3));
  check_stack(second);
  check_stack(second.next->longest());
  EXPECT_FALSE(second.next->longest().next);
  const Stack separate = stacks_of(records, false, 1)[0].next->longest();
  for (const Segment& segment : separate.segments)
    EXPECT_TRUE(segment.role == Role::value || segment.sees.empty());
}

TEST(Entries, AnAnswerWithoutEntriesIsComplete) {
  const Model model = make_random_model({}, 990);
  const auto backend = make_quick_backend(model, 1);
  auto records = random_rows(2, 1);
  auto bin = std::make_shared<BinParts>(*records[0].bin);
  for (QuestionParts& question : bin->questions)
    if (question.entries) {
      auto none = std::make_shared<EntryParts>(*question.entries);
      none->entries = [](const Tokens&) { return std::vector<Tokens>(); };
      question.entries = none;
    }
  for (RecordParts& record : records) record.bin = bin;
  EngineStats stats;
  const Answers answers =
      decode(*backend, stacks_of(records, true, 3), {.tokens_per_step = 64, .pages = 4000}, &stats);
  EXPECT_EQ(answers.size(), 18u);
  EXPECT_EQ(stats.answers, 18);
  EXPECT_EQ(stats.entry_answers, 0);
}

}  // namespace
}  // namespace sheaf

// Every method on random models: exact where it must be, and equal to a dense-mask transformer where the
// paper's mask makes it differ from separate prompts.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>

#include "core/engine/engine.h"
#include "core/methods/method.h"
#include "cpu/cpu_backend.h"
#include "tests/dense_model.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"
#include "tests/random_parts.h"
#include "tests/segments/mask.h"

namespace sheaf {
namespace {

using test::make_random_model;
using test::make_random_records;

using test::Answers, test::decode, test::expect_same, test::MakeBackend, test::quick;

class Exact : public testing::TestWithParam<MakeBackend> {};

TEST_P(Exact, SharingNeverChangesAnAnswer) {
  constexpr void (*changes[])(ModelConfig&) = {nullptr, test::use_experts, test::use_windows,
                                               test::use_sigmoid_experts, test::use_gpt_oss};
  for (uint32_t seed = 0; seed < 8; ++seed) {
    const Model model = make_random_model(
        {.qk_norm = seed % 2 ? QkNorm::per_head : QkNorm::none, .change = changes[seed % std::size(changes)]},
        seed);
    const auto records = make_random_records(
        {.records = 4, .questions = 5, .max_tokens = 8, .own_questions = seed % 2 == 0, .longest = 24}, seed);
    auto run = [&](auto build, EngineOptions options, EngineStats* stats = nullptr) {
      std::vector<Stack> stacks;
      build(records, stacks);
      const auto backend = GetParam()(model);
      return decode(*backend, std::move(stacks), options, stats);
    };
    EngineStats alone_stats, tree_stats, prefix_stats;
    const Answers alone =
        run(build_separate, {.tokens_per_step = 64, .pages = 400, .page_size = 16}, &alone_stats);
    ASSERT_EQ(alone.size(), 20u);
    expect_same(alone, run(build_tree, {.tokens_per_step = 64, .pages = 400, .page_size = 16}, &tree_stats),
                "tree");
    expect_same(alone,
                run(build_prefix, {.tokens_per_step = 64, .pages = 400, .page_size = 16}, &prefix_stats),
                "prefix");
    expect_same(alone, run(build_tree, {.tokens_per_step = 1, .pages = 200, .page_size = 4}),
                "tree, a row a step");
    expect_same(alone, run(build_prefix, {.tokens_per_step = 7, .pages = 30, .page_size = 8}),
                "prefix in a small pool");
    expect_same(alone, run(build_separate, {.tokens_per_step = 300, .pages = 3000, .page_size = 1}),
                "separate, all at once");
    for (const int32_t rows : {1, 9, 64})
      for (const int32_t page_size : {4, 16}) {
        const EngineOptions options{
            .tokens_per_step = rows, .pages = 400, .page_size = page_size, .whole_pages = true};
        expect_same(alone, run(build_tree, options), "tree in whole pages");
        expect_same(alone, run(build_prefix, options), "prefix in whole pages");
        expect_same(alone, run(build_separate, options), "separate in whole pages");
      }

    EXPECT_EQ(alone_stats.alone_tokens, alone_stats.tokens());
    EXPECT_EQ(tree_stats.alone_tokens, alone_stats.tokens());
    EXPECT_LT(tree_stats.tokens(), alone_stats.tokens() * 2 / 3);
    EXPECT_EQ(tree_stats.tokens(), prefix_stats.tokens());
  }
}

TEST_P(Exact, SampledAnswersDependOnTheRecordAlone) {
  const Model model = make_random_model({}, 11);
  const auto records = make_random_records({.records = 3, .questions = 4, .max_tokens = 10}, 11);
  auto run = [&](auto build, int32_t rows, uint64_t seed) {
    std::vector<Stack> stacks;
    build(records, stacks);
    const auto backend = GetParam()(model);
    return decode(
        *backend, std::move(stacks),
        {.tokens_per_step = rows, .pages = 300, .temperature = 1, .top_k = 20, .top_p = 0.9f, .seed = seed});
  };
  const Answers alone = run(build_separate, 64, 1);
  expect_same(alone, run(build_tree, 16, 1), "tree");
  const Answers other = run(build_tree, 16, 2);
  int different = 0;
  for (const auto& [key, answer] : alone) different += answer.tokens != other.at(key).tokens;
  EXPECT_GT(different, 6);
}

TEST_P(Exact, ARecordsAnswersDoNotDependOnItsNeighbours) {
  const Model model = make_random_model({}, 21);
  const auto records = make_random_records({.records = 6, .questions = 3, .max_tokens = 6}, 21);
  for (auto build :
       {+[](std::span<const RecordParts> i, std::vector<Stack>&o) { build_tree(i, o); },
        +[](std::span<const RecordParts> i, std::vector<Stack>&o) { build_positional(i, false, o); }}) {
    std::vector<Stack> together, apart;
    build(records, together);
    for (size_t i = 0; i < records.size(); ++i) build(std::span(records).subspan(i, 1), apart);
    const auto backend = GetParam()(model);
    const auto other = GetParam()(model);
    expect_same(decode(*backend, together, {.tokens_per_step = 50, .pages = 500}),
                decode(*other, apart, {.tokens_per_step = 9, .pages = 100}), "neighbours");
  }
}

TEST_P(Exact, SharingNeverChangesAnAnswerWhereDocumentsAreWeighedApart) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Model model = make_random_model({.change = seed % 2 ? test::use_gpt_oss : nullptr}, 40 + seed);
    auto records =
        make_random_records({.records = 4, .questions = 3, .max_tokens = 8, .own_questions = true}, seed);
    test::add_random_chains(records, 4, 30, seed);
    // Some answers are options, each in a segment of its own that sees the documents, too.
    const auto trie = std::make_shared<AnswerTrie>(std::vector<Tokens>{{5, 6}, {5, 8}, {11}}, 0, true);
    for (RecordParts& record : records) record.own_questions[0].allowed = trie;
    const auto run = [&](bool shared, const EngineOptions& options) {
      std::vector<Stack> stacks;
      build_ape(records, shared, stacks, {0.5f, 0.8f});
      for (Stack& stack : stacks)
        for (Slot& slot : stack.slots) slot.question += 100 * slot.option;  // its name in the results
      const auto backend = GetParam()(model);
      return decode(*backend, std::move(stacks), options);
    };
    const Answers alone = run(false, {.tokens_per_step = 64, .pages = 400});
    for (const int32_t rows : {1, 9, 300})
      for (const int32_t page_size : {4, 16})
        for (const bool whole_pages : {false, true})
          expect_same(alone,
                      run(true, {.tokens_per_step = rows,
                                 .pages = 400,
                                 .page_size = page_size,
                                 .whole_pages = whole_pages}),
                      "shared");
  }
}

std::string backend_name(const testing::TestParamInfo<MakeBackend>& param) {
  constexpr const char* kNames[] = {"reference", "quick", "int16", "int8"};
  return kNames[param.index];
}
INSTANTIATE_TEST_SUITE_P(Cpu, Exact,
                         testing::Values(&make_reference_backend, &quick<Precision::f32>,
                                         &quick<Precision::int16>, &quick<Precision::int8>),
                         backend_name);

/// Greedy decoding of a stack by the dense model, step by step as HPD's algorithm 1: every open value gets
/// its next token.
std::vector<Tokens> decode_dense(const Model& model, const Stack& stack, const Tokens& ends) {
  std::vector<TokenPlace> places;
  Tokens tokens;
  std::vector<int32_t> positions;
  std::vector<size_t> last(stack.slots.size());  // the token whose logits give the slot's next token
  DocumentSoftmax softmax;
  for (const Segment& segment : stack.segments)
    for (const Sight& sight : segment.sees)
      if (!sight.softmax.plain()) softmax = sight.softmax;
  for (size_t i = 0; i < stack.segments.size(); ++i) {
    for (size_t t = 0; t < stack.segments[i].tokens.size(); ++t) {
      places.push_back({static_cast<SegmentId>(i), static_cast<int32_t>(t)});
      tokens.push_back(stack.segments[i].tokens[t]);
      positions.push_back(stack.segments[i].first_position + static_cast<int32_t>(t));
    }
    for (size_t s = 0; s < stack.slots.size(); ++s)
      if (stack.slots[s].prompt == static_cast<SegmentId>(i)) last[s] = tokens.size() - 1;
  }
  const test::DenseModel dense(model);
  std::vector<Tokens> answers(stack.slots.size());
  std::vector<bool> open(stack.slots.size(), true);
  while (std::find(open.begin(), open.end(), true) != open.end()) {
    const auto logits = dense.run(tokens, positions, dense_mask(stack, places), softmax);
    for (size_t s = 0; s < stack.slots.size(); ++s) {
      if (!open[s]) continue;
      const auto& row = logits[last[s]];
      const auto token = static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
      if (std::find(ends.begin(), ends.end(), token) != ends.end()) {
        open[s] = false;
        continue;
      }
      answers[s].push_back(token);
      if (static_cast<int32_t>(answers[s].size()) == stack.slots[s].max_tokens) {
        open[s] = false;
        continue;
      }
      const SegmentId answer = stack.slots[s].answer;
      const auto index = static_cast<int32_t>(stack.segments[static_cast<size_t>(answer)].tokens.size() +
                                              answers[s].size() - 1);
      places.push_back({answer, index});
      tokens.push_back(token);
      positions.push_back(stack.segments[static_cast<size_t>(answer)].first_position + index);
      last[s] = tokens.size() - 1;
    }
  }
  return answers;
}

TEST(HpdPositional, EqualsATransformerWithADenseMask) {
  int64_t tokens = 0, differ_from_tree = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const bool joint = seed % 2 == 0;
    const Model model = make_random_model({}, 100 + seed);
    const auto records = make_random_records({.records = 3, .questions = 4, .max_tokens = 6}, seed);
    std::vector<Stack> stacks, trees;
    build_positional(records, joint, stacks);
    joint ? build_joint_tree(records, trees) : build_tree(records, trees);
    const auto dense = decode_dense(model, stacks[0], {3, 7});
    for (int32_t rows : {1000, 5}) {
      const auto backend = make_quick_backend(model, 2);
      const Answers got = decode(*backend, stacks, {.tokens_per_step = rows, .pages = 300});
      for (size_t s = 0; s < stacks[0].slots.size(); ++s) {
        const Slot& slot = stacks[0].slots[s];
        EXPECT_EQ(got.at({slot.record, slot.question}).tokens, dense[s])
            << "seed " << seed << ", slot " << s << ", rows " << rows;
        tokens += static_cast<int64_t>(dense[s].size());
      }
    }
    const auto backend = make_quick_backend(model, 2);
    const Answers tree = decode(*backend, trees, {.tokens_per_step = 64, .pages = 300});
    for (size_t s = 0; s < stacks[0].slots.size(); ++s)
      differ_from_tree +=
          tree.at({stacks[0].slots[s].record, stacks[0].slots[s].question}).tokens != dense[s];
  }
  EXPECT_GT(tokens, 500);
  EXPECT_GT(differ_from_tree, 20) << "values that see other values should differ from independent ones";
}

TEST(Ape, EqualsATransformerWithADenseMask) {
  int64_t tokens = 0;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    const Model model = make_random_model({}, 200 + seed);
    auto records =
        make_random_records({.records = 3, .questions = 3, .max_tokens = 6, .own_questions = true}, seed);
    test::add_random_chains(records, 4, 12, seed);
    std::vector<Stack> stacks, alone;
    build_ape(records, true, stacks);
    build_ape(records, false, alone);
    ASSERT_EQ(stacks.size(), records.size());
    for (const bool whole_pages : {false, true})
      for (const int32_t rows : {1000, 5}) {
        const EngineOptions options{.tokens_per_step = rows, .pages = 400, .whole_pages = whole_pages};
        const auto backend = make_quick_backend(model, 2), other = make_quick_backend(model, 2);
        const Answers got = decode(*backend, stacks, options);
        expect_same(decode(*other, alone, options), got, "nothing shared");
        for (const Stack& stack : stacks) {
          const auto dense = decode_dense(model, stack, {3, 7});
          for (size_t s = 0; s < stack.slots.size(); ++s) {
            EXPECT_EQ(got.at({stack.slots[s].record, stack.slots[s].question}).tokens, dense[s])
                << "seed " << seed << ", slot " << s << ", rows " << rows;
            tokens += static_cast<int64_t>(dense[s].size());
          }
        }
      }
  }
  EXPECT_GT(tokens, 500);
}

/// Documents' scores by a temperature and their weight by a scale, on models that attend in several ways.
TEST(Ape, WithATemperatureAndAScaleEqualsATransformerWithADenseMask) {
  constexpr void (*changes[])(ModelConfig&) = {nullptr, test::use_windows, test::use_gpt_oss};
  int64_t tokens = 0, differ = 0;
  for (uint32_t seed = 0; seed < 9; ++seed) {
    const DocumentSoftmax softmax{seed % 3 == 1 ? 1 : 0.3f, seed % 3 == 2 ? 1 : 0.5f};
    const Model model = make_random_model({.change = changes[seed / 3]}, 300 + seed);
    auto records =
        make_random_records({.records = 3, .questions = 3, .max_tokens = 6, .own_questions = true}, seed);
    test::add_random_chains(records, 4, 12, seed);
    std::vector<Stack> stacks, alone, plain;
    build_ape(records, true, stacks, softmax);
    build_ape(records, false, alone, softmax);
    build_ape(records, true, plain);
    for (const bool whole_pages : {false, true})
      for (const int32_t rows : {1000, 5}) {
        const EngineOptions options{.tokens_per_step = rows, .pages = 400, .whole_pages = whole_pages};
        const auto backend = make_quick_backend(model, 2), other = make_quick_backend(model, 2);
        const Answers got = decode(*backend, stacks, options);
        expect_same(decode(*other, alone, options), got, "nothing shared");
        const Answers without = decode(*other, plain, options);
        for (const Stack& stack : stacks) {
          const auto dense = decode_dense(model, stack, {3, 7});
          for (size_t s = 0; s < stack.slots.size(); ++s) {
            const auto key = std::pair(stack.slots[s].record, stack.slots[s].question);
            EXPECT_EQ(got.at(key).tokens, dense[s]) << "seed " << seed << ", slot " << s << ", rows " << rows;
            tokens += static_cast<int64_t>(dense[s].size());
            differ += without.at(key).logprob != got.at(key).logprob;
          }
        }
      }
  }
  EXPECT_GT(tokens, 500);
  EXPECT_EQ(differ, 9 * 4 * 9) << "every answer should feel the temperature or the scale";
}

/// One document, or none, is an ordinary prompt.
TEST(Ape, OfOneDocumentEqualsOnePromptPerQuestion) {
  const Model model = make_random_model({}, 31);
  auto records = make_random_records({.records = 4, .questions = 3, .own_questions = true}, 31);
  std::vector<Stack> plain, apart;
  build_separate(records, plain);
  for (RecordParts& record : records) {
    record.documents.push_back({record.document, {0.5f, 0.5f, 0.5f}});
    record.document.clear();
  }
  build_ape(records, true, apart);
  const auto backend = make_quick_backend(model, 2), other = make_quick_backend(model, 2);
  EngineStats alone, stats;
  expect_same(decode(*backend, plain, {.tokens_per_step = 64, .pages = 400}, &alone),
              decode(*other, apart, {.tokens_per_step = 64, .pages = 400}, &stats), "one document");
  EXPECT_EQ(stats.alone_tokens, alone.tokens());
}

TEST(Engine, RefusesAStackLargerThanThePool) {
  const Model model = make_random_model({}, 1);
  const auto records = make_random_records({.records = 2}, 1);
  std::vector<Stack> stacks;
  build_tree(records, stacks);
  const auto backend = make_reference_backend(model);
  const StopRules rules(61, {});
  Engine engine(*backend, rules, {.tokens_per_step = 8, .pages = 2, .page_size = 4});
  EXPECT_FALSE(engine.fits(stacks[0]));
}

TEST(Engine, RunsNoMorePromptsAtOnceThanAllowed) {
  const Model model = make_random_model({}, 2);
  for (const int kind : {0, 2}) {
    const auto stacks = test::random_stacks(2, kind);
    EngineOptions options{.tokens_per_step = 200, .pages = 2000, .page_size = 4};
    EngineStats free, held;
    const auto backend = make_quick_backend(model, 1);
    const Answers expected = decode(*backend, stacks, options, &free);
    int32_t largest = 0;
    for (const Stack& stack : stacks) {
      int32_t pages = 0;
      for (const int32_t keys : stack.most_keys()) pages += (keys + 3) / 4;
      largest = std::max(largest, pages);
    }
    options.prompts = 1;
    expect_same(expected, decode(*backend, stacks, options, &held), "one prompt at a time");
    EXPECT_LE(held.peak_pages, largest);
    EXPECT_GT(free.peak_pages, largest);
    EXPECT_GE(held.steps, static_cast<int64_t>(stacks.size()));
    EXPECT_GT(held.steps, free.steps);
  }
}

}  // namespace
}  // namespace sheaf

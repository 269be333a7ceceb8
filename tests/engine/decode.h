#pragma once
#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/methods/method.h"
#include "cpu/cpu_backend.h"
#include "tests/random_parts.h"

namespace sheaf::test {

using Answers = std::map<std::pair<int32_t, int32_t>, Answer>;  // by record and question

/// Decodes; `interrupt_every` not 0: stops after so many steps and continues, until all is done.
inline Answers decode(Backend& backend, std::vector<Stack> stacks, EngineOptions options,
                      EngineStats* stats_out = nullptr, int interrupt_every = 0) {
  const StopRules rules(backend.config().vocab, {3, 7});
  std::atomic<bool> interrupted = false;
  options.interrupted = &interrupted;
  Engine engine(backend, rules, options);
  int steps = 0;
  engine.on_step = [&](const EngineStats& stats) {
    EXPECT_EQ(stats.steps, ++steps);
    interrupted = interrupt_every > 0 && steps % interrupt_every == 0;
  };
  Answers answers;
  size_t next = 0;
  for (bool finished = false; !finished; interrupted = false) {
    finished = engine.run(
        [&]() -> std::optional<Stack> {
          if (next == stacks.size()) return std::nullopt;
          return std::move(stacks[next++]);
        },
        [&](Stack&& stack, std::vector<Answer>&& got) {
          for (size_t i = 0; i < got.size(); ++i) {
            const auto key = std::pair(stack.slots[i].record, stack.slots[i].question);
            EXPECT_TRUE(answers.emplace(key, std::move(got[i])).second);
          }
        });
    EXPECT_TRUE(finished || interrupt_every > 0);
  }
  const EngineStats& stats = engine.stats();
  EXPECT_LE(stats.waited_seconds, stats.step_seconds);
  EXPECT_LE(stats.idle_seconds, stats.host_seconds);
  if (stats_out) *stats_out = stats;
  return answers;
}

inline void expect_same(const Answers& a, const Answers& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (const auto& [key, answer] : a) {
    const Answer& other = b.at(key);
    EXPECT_EQ(answer.tokens, other.tokens) << what << ": record " << key.first << ", question " << key.second;
    EXPECT_EQ(answer.ending, other.ending) << what;
    // A plain prompt has none.
    EXPECT_TRUE(answer.voices.empty() || other.voices.empty() || answer.voices == other.voices) << what;
    EXPECT_EQ(answer.logprob, other.logprob) << what << ": not the same to the bit";
    EXPECT_EQ(answer.null_logprob, other.null_logprob) << what;
    EXPECT_EQ(answer.alternative, other.alternative) << what;
    EXPECT_EQ(answer.null_margin, other.null_margin) << what;
  }
}

constexpr int kKinds = 9;

/// Nine records in three prompts, built by method `kind` of nine; some with lists of allowed answers.
inline std::vector<Stack> random_stacks(uint32_t seed, int kind) {
  auto records = make_random_records({.records = 9,
                                      .questions = 4,
                                      .max_tokens = 7,
                                      .own_questions = (kind < 3 || kind > 5) && seed % 2 == 0,
                                      .longest = 12},
                                     seed);
  const auto trie =
      std::make_shared<AnswerTrie>(std::vector<Tokens>{{5, 6}, {5, 8, 9, 5}, {11}, {20, 21}}, 0);
  if (seed % 3 == 0)
    for (RecordParts& record : records)
      for (QuestionParts& question : record.own_questions) question.allowed = trie;
  // Null is one token, or two, the first of which an allowed answer begins with too.
  if (seed % 2 == 0 && kind != 6) {
    const auto watch = std::make_shared<Watch>(Watch{seed % 4 == 0 ? Tokens{11} : Tokens{20, 21}, 0.5f});
    for (RecordParts& record : records)
      for (QuestionParts& question : record.own_questions) question.watch = watch;
  }
  if (kind > 5) add_random_chains(records, 4, 12, seed);
  if (kind == 8) add_random_findings(records, 5, seed % 2 == 0, seed);
  Job::Method pced;
  pced.contrast = seed % 3 == 2 ? 0.5f : -1.0f;
  pced.aggregate = seed % 4 == 0 ? Aggregate::mixture : seed % 4 == 1 ? Aggregate::product : Aggregate::max;
  std::vector<Stack> stacks;
  for (size_t first = 0; first < records.size(); first += 3) {
    const auto group = std::span(records).subspan(first, 3);
    if (kind == 0) build_tree(group, stacks);
    if (kind == 1) build_prefix(group, stacks);
    if (kind == 2) build_separate(group, stacks);
    if (kind == 3) build_positional(group, true, stacks);
    if (kind == 4) build_positional(group, false, stacks);
    if (kind == 5) build_joint_tree(group, stacks);
    if (kind == 6) build_pced(group, pced, true, stacks);
    if (kind == 7)
      build_ape(group, true, stacks, seed % 2 == 0 ? DocumentSoftmax{} : DocumentSoftmax{0.5f, 0.8f});
    if (kind == 8) build_map_reduce(group, true, stacks);
  }
  return stacks;
}

/// The same with answers that are long enough to repeat themselves.
inline std::vector<Stack> long_stacks(uint32_t seed, int kind) {
  std::vector<Stack> stacks = random_stacks(seed, kind);
  const bool positional = kind == 3 || kind == 4;
  for (Stack& stack : stacks)
    for (Slot& slot : stack.slots)
      if (!slot.allowed && !positional) slot.max_tokens = 24;
  return stacks;
}

using MakeBackend = std::unique_ptr<Backend> (*)(const Model&);
template <Precision Computed>
std::unique_ptr<Backend> quick(const Model& model) {
  return make_quick_backend(model, 2, Computed);
}

/// Pages of 4 that hold the largest of the stacks and little more.
inline int32_t tight_pool(const std::vector<Stack>& stacks) {
  int32_t most = 0;
  const auto count = [&](const Stack& stack) {
    int32_t pages = 0;
    for (int32_t keys : stack.most_keys()) pages += (keys + 3) / 4;
    most = std::max(most, pages);
  };
  for (const Stack& stack : stacks) {
    count(stack);
    if (stack.next) count(stack.next->longest());
  }
  return most + 10;
}

}  // namespace sheaf::test

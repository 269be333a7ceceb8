// The small parts of the decode loop: trie, pages, residents, stop rules.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/engine/residents.h"
#include "core/engine/stop_rules.h"
#include "core/methods/method.h"
#include "core/segments/allowed_answers.h"
#include "tests/random_parts.h"

namespace sheaf {
namespace {

TEST(AnswerTrie, WalksToEveryAnswerAndNowhereElse) {
  const AnswerTrie trie({{5, 6}, {5, 7, 8}, {5, 7}, {2}}, 99);
  const auto list = [&](AnswerTrie::Node node) {
    const auto allowed = trie.allowed(node);
    return Tokens(allowed.begin(), allowed.end());
  };
  EXPECT_EQ(list(AnswerTrie::root), (Tokens{2, 5}));
  EXPECT_EQ(trie.advance(AnswerTrie::root, 2), -1);
  const auto five = trie.advance(AnswerTrie::root, 5);
  EXPECT_EQ(list(five), (Tokens{6, 7}));
  EXPECT_EQ(trie.advance(five, 6), -1);
  const auto seven = trie.advance(five, 7);
  EXPECT_EQ(list(seven), (Tokens{8, 99})) << "an answer that begins another may also stop";
  EXPECT_EQ(trie.advance(seven, 99), -1);
  EXPECT_EQ(trie.advance(seven, 8), -1);
  EXPECT_EQ(trie.find(Tokens{5, 7, 99}), 2);
  EXPECT_EQ(trie.find(Tokens{5, 7, 8}), 1);
  EXPECT_EQ(trie.find(Tokens{5}), -1);
  EXPECT_EQ(trie.longest(), 4);
  EXPECT_THROW((void)trie.advance(five, 8), Error);
}

TEST(PagePool, GivesEachPageOnce) {
  PagePool pool(3, 4);
  const int32_t a = pool.take(), b = pool.take(), c = pool.take();
  EXPECT_NE(a, b);
  EXPECT_NE(b, c);
  EXPECT_NE(a, c);
  EXPECT_THROW((void)pool.take(), Error);
  pool.give_back(b);
  EXPECT_THROW(pool.give_back(b), Error);
  EXPECT_EQ(pool.take(), b);
  EXPECT_EQ(pool.pages_for(0), 0);
  EXPECT_EQ(pool.pages_for(4), 1);
  EXPECT_EQ(pool.pages_for(5), 2);
}

/// Admits a stack, takes all its pages, and finishes every segment.
void pass_through(Residents& residents, const Stack& stack) {
  const auto held = residents.admit(stack);
  for (size_t i = 0; i < held.size(); ++i)
    residents.grow(held[i], static_cast<int32_t>(stack.segments[i].tokens.size()));
  for (size_t i = 0; i < held.size(); ++i) residents.finish(stack.segments[i], held[i], held);
}

TEST(Residents, SharedSegmentsAreOneAndStayUntilTheirPagesAreNeeded) {
  const auto records = test::make_random_records({.records = 2, .questions = 2, .own_questions = true}, 1);
  std::vector<Stack> stacks;
  build_prefix(records, stacks);
  PagePool pool(64, 4);
  Residents residents(pool, false);
  const int32_t cold = residents.pages_needed(stacks[0]);
  const auto first = residents.admit(stacks[0]);
  const auto second = residents.admit(stacks[1]);
  const auto third = residents.admit(stacks[2]);
  EXPECT_EQ(first[0], second[0]);
  EXPECT_EQ(first[1], second[1]) << "the same document";
  EXPECT_EQ(first[0], third[0]);
  EXPECT_NE(first[1], third[1]) << "another document";
  EXPECT_NE(first[2], second[2]) << "another question";
  EXPECT_EQ(cold - residents.pages_needed(stacks[0]),
            pool.pages_for(static_cast<int64_t>(stacks[0].segments[0].tokens.size())) +
                pool.pages_for(static_cast<int64_t>(stacks[0].segments[1].tokens.size())));
}

TEST(Residents, PagesThatWereUsedBeforeLieInARow) {
  PagePool pool(16, 4);
  Residents residents(pool, false);
  Stack stack;
  stack.add({Role::document, Tokens(40, 1), 0, {}, false});
  pass_through(residents, stack);
  const auto again = residents.admit(stack);
  residents.grow(again[0], 40);
  ASSERT_EQ(again[0]->pages.size(), 10u);
  for (size_t i = 1; i < again[0]->pages.size(); ++i)
    EXPECT_EQ(again[0]->pages[i], again[0]->pages[i - 1] + 1);
}

TEST(Residents, EveryPageComesBack) {
  PagePool pool(40, 4);
  Residents residents(pool, false);
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const auto records = test::make_random_records({.records = 1, .questions = 3, .max_tokens = 3}, seed);
    std::vector<Stack> stacks;
    seed % 2 ? build_prefix(records, stacks) : build_positional(records, false, stacks);
    for (const Stack& stack : stacks) {
      ASSERT_LE(residents.pages_needed(stack), residents.room());
      pass_through(residents, stack);
    }
    ASSERT_EQ(residents.room(), pool.total()) << "seed " << seed;
  }
  EXPECT_LE(residents.peak_pages(), 40);
}

TEST(StopRules, KnowACompleteLiteral) {
  const std::vector<std::pair<std::string, std::string>> complete{{" \"a\"", " \"a\""},
                                                                  {"\"a\",", "\"a\""},
                                                                  {" 12, ", " 12"},
                                                                  {" null}", " null"},
                                                                  {" [\"a\", \"]\"] x", " [\"a\", \"]\"]"},
                                                                  {" [1], x", " [1]"},
                                                                  {" \"a\\\"b\"}", " \"a\\\"b\""},
                                                                  {" 5\" heel,", " 5\" heel"},
                                                                  {" 1,200.5,\n", " 1,200.5"},
                                                                  {" 12, 5", " 12"},
                                                                  {" \"12\" pipe\",", " \"12\" pipe\""},
                                                                  {" \"12\" }", " \"12\""},
                                                                  {" \"a\n", " \"a\n"}};
  for (const auto& [text, literal] : complete) {
    if (literal.back() == '\n') {
      EXPECT_EQ(literal_end(text), std::string::npos)
          << text;  // the newline stop itself catches an open string
    } else {
      EXPECT_EQ(text.substr(0, literal_end(text)), literal);
    }
  }
  for (const char* text : {"", " ", " \"a", " 12", " null", " [\"a\", \"]", " [1, 2", " \"a, b", " \"a\\\"",
                           " 12,", " 1,200", " \"12\"", " \"12\" pipe"})
    EXPECT_EQ(literal_end(text), std::string::npos) << text;
}

TEST(StopRules, FindTheBraceThatClosesTheObject) {
  EXPECT_EQ(object_end("\"a\": 1}"), 7u);
  EXPECT_EQ(object_end("\"a\": \"}\"} x"), 9u);
  EXPECT_EQ(object_end("\"a\": {\"b\": 1}"), std::string::npos);
  EXPECT_EQ(object_end("\"a\": \"\\\"}\""), std::string::npos);
  EXPECT_EQ(object_end(""), std::string::npos);
  EXPECT_EQ(object_end("\"a\": [1}, {}}"), 8u) << "brackets do not count";
  EXPECT_EQ(object_end("\"a\": 1]} {}}"), 8u);
}

}  // namespace
}  // namespace sheaf

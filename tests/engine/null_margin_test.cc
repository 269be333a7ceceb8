// What an answer says of null and of its best alternative, against the plain definition over all logits.
#include <gtest/gtest.h>

#include "core/engine/answer.h"
#include "cpu/cpu_backend.h"
#include "tests/dense_model.h"
#include "tests/engine/decode.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr EngineOptions kOptions{.tokens_per_step = 64, .pages = 4000};

using Allowed = std::shared_ptr<const AnswerTrie>;

std::vector<RecordParts> watched_records(uint32_t seed, const Tokens& null, float bias,
                                         const Allowed& allowed = nullptr) {
  auto records =
      test::make_random_records({.records = 6, .questions = 5, .max_tokens = 5, .own_questions = true}, seed);
  for (RecordParts& record : records)
    for (QuestionParts& question : record.own_questions) {
      question.watch = std::make_shared<Watch>(Watch{null, bias});
      question.allowed = allowed;
    }
  return records;
}

test::Answers decode_alone(const Model& model, const std::vector<RecordParts>& records) {
  std::vector<Stack> stacks;
  build_separate(records, stacks);
  return test::decode(*make_reference_backend(model), std::move(stacks), kOptions);
}

/// Log-probabilities of the token after `tokens`.
std::vector<double> next_logprobs(const test::DenseModel& model, const Tokens& tokens) {
  std::vector<double> logits = model.run_causal(tokens);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (double& logit : logits) logit -= std::log(sum);
  return logits;
}

/// The definition: walk the answer, look at every logit.
Answer walk(const test::DenseModel& model, Tokens prompt, const Answer& decoded, const Tokens& null,
            const Allowed& allowed) {
  Answer plain;
  AnswerTrie::Node node = AnswerTrie::root;
  const size_t steps = decoded.tokens.size() + (decoded.ending == Ending::end_of_text);
  for (size_t i = 0; i < steps; ++i) {
    const std::vector<double> logprobs = next_logprobs(model, prompt);
    const bool on_null = i < null.size() && std::equal(null.begin(), null.begin() + static_cast<ptrdiff_t>(i),
                                                       decoded.tokens.begin());
    const bool was_null =
        !null.empty() && i >= null.size() && std::equal(null.begin(), null.end(), decoded.tokens.begin());
    const TokenId apart = on_null ? null[i] : -1;
    TokenId token = i < decoded.tokens.size() ? decoded.tokens[i] : -1;
    if (token < 0) token = logprobs[3] > logprobs[7] ? 3 : 7;  // either ends the text
    double second = kNever;
    const auto ways = allowed ? allowed->allowed(node) : std::span<const TokenId>();
    for (TokenId other = 0; other < std::ssize(logprobs); ++other)
      if (other != token && other != apart && (!allowed || std::ranges::find(ways, other) != ways.end()))
        second = std::max(second, logprobs[static_cast<size_t>(other)]);
    const bool null_allowed = !allowed || std::ranges::find(ways, apart) != ways.end();
    if (on_null) {
      const double of_null = null_allowed ? logprobs[static_cast<size_t>(apart)] : kNever;
      plain.null_logprob = plain.logprob + of_null;
      plain.null_margin = token == apart         ? std::max(plain.null_margin, second - of_null)
                          : i + 1 == null.size() ? logprobs[static_cast<size_t>(token)] - of_null
                                                 : -kNever;
    }
    if (!was_null) plain.alternative = std::max(plain.alternative, plain.logprob + second);
    plain.logprob += logprobs[static_cast<size_t>(token)];
    prompt.push_back(token);
    if (allowed && node >= 0) node = allowed->advance(node, token);
  }
  return plain;
}

void expect_near(double got, double wanted, const char* what) {
  EXPECT_TRUE(got == wanted || std::abs(got - wanted) < 2e-4) << what << ": " << got << ", not " << wanted;
}

TEST(NullMargin, EqualsTheDefinitionOverAllLogits) {
  const auto trie =
      std::make_shared<AnswerTrie>(std::vector<Tokens>{{5, 6}, {5, 8, 9, 5}, {11}, {20, 21}, {20, 22}}, 0);
  int nulls = 0, values = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const Model model = test::make_random_model({}, seed);
    const test::DenseModel dense(model);
    const Tokens null = seed % 3 == 0 ? Tokens{11} : seed % 3 == 1 ? Tokens{20, 21} : Tokens{};
    const Allowed allowed = seed % 2 ? trie : nullptr;
    const auto records = watched_records(seed, null, seed % 4 < 2 ? 3.0f : 0.0f, allowed);
    for (const auto& [key, answer] : decode_alone(model, records)) {
      const RecordParts& record = records[static_cast<size_t>(key.first)];
      Tokens prompt = record.bin->instruction;
      append(prompt, record.document);
      append(prompt, record.bin->opening);
      append(prompt, record.own_questions[static_cast<size_t>(key.second)].tokens);
      const Answer plain = walk(dense, prompt, answer, null, allowed);
      expect_near(answer.logprob, plain.logprob, "logprob");
      expect_near(answer.alternative, plain.alternative, "alternative");
      expect_near(answer.null_logprob, plain.null_logprob, "null");
      expect_near(answer.null_margin, plain.null_margin, "margin");
      const bool is_null = !null.empty() && answer.tokens.size() >= null.size() &&
                           std::equal(null.begin(), null.end(), answer.tokens.begin());
      ++(is_null ? nulls : values);
    }
  }
  EXPECT_GT(nulls, 20);
  EXPECT_GT(values, 100);
}

/// A null of one token: with a bias above the margin the answer is null, below it the same as without.
TEST(NullMargin, IsTheBiasThatMakesNull) {
  const Tokens null{11};
  int turned = 0, kept = 0;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const Model model = test::make_random_model({}, seed);
    const test::Answers plain = decode_alone(model, watched_records(seed, null, 0));
    for (const float bias : {-4.0f, 0.7f, 2.0f, 5.0f}) {
      const test::Answers biased = decode_alone(model, watched_records(seed, null, bias));
      for (const auto& [key, answer] : plain) {
        const Answer& now = biased.at(key);
        const bool is_null = !now.tokens.empty() && now.tokens[0] == null[0];
        EXPECT_EQ(is_null, static_cast<double>(bias) > answer.null_margin);
        const bool was_null = !answer.tokens.empty() && answer.tokens[0] == null[0];
        EXPECT_TRUE(is_null != was_null || now.tokens == answer.tokens);
        ++(is_null == was_null ? kept : turned);
      }
    }
  }
  EXPECT_GT(turned, 20);
  EXPECT_GT(kept, 100);
}

/// Options that are scored as a whole: null's log-probability is exact, and its bias decides.
TEST(NullMargin, IsKnownForOptions) {
  const std::vector<Tokens> options{{40, 5, 6}, {40, 8}, {40, 9, 9, 2}, {31, 30}};
  const Tokens null = options.back();
  int nulls = 0, values = 0;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    const Model model = test::make_random_model({}, seed);
    const auto backend = make_reference_backend(model);
    // Each option by itself.
    std::vector<test::Answers> alone;
    for (const Tokens& option : options)
      alone.push_back(decode_alone(
          model,
          watched_records(seed, {}, 0, std::make_shared<AnswerTrie>(std::vector<Tokens>{option}, -1))));
    for (const float bias : {0.0f, 2.0f, -3.0f}) {
      auto records = watched_records(seed, null, bias);
      for (RecordParts& record : records)
        for (QuestionParts& question : record.own_questions)
          question.allowed = std::make_shared<AnswerTrie>(options, -1, true);
      std::vector<Stack> stacks;
      build_tree(records, stacks);
      const StopRules rules(model.config.vocab, {3, 7});
      Engine engine(*backend, rules, kOptions);
      size_t next = 0;
      const auto check = [&](Stack&& stack, std::vector<Answer>&& answers) {
        for (size_t i = 0, end = 0; i < answers.size(); i = end) {
          end = options_end(stack.slots, i);
          ASSERT_EQ(end - i, options.size());
          const std::pair key(stack.slots[i].record, stack.slots[i].question);
          const Answer taken = take_likeliest(std::span(stack.slots).subspan(i, end - i),
                                              std::span(answers).subspan(i, end - i));
          const double of_null = alone.back().at(key).logprob;
          EXPECT_EQ(taken.null_logprob, of_null);
          double best = kNever, rest = kNever;  // of the values, and of those that were not taken
          for (size_t o = 0; o + 1 < options.size(); ++o) {
            best = std::max(best, alone[o].at(key).logprob);
            if (options[o] != taken.tokens) rest = std::max(rest, alone[o].at(key).logprob);
          }
          const bool is_null = taken.tokens == null;
          EXPECT_EQ(is_null, of_null + static_cast<double>(bias) > best);
          EXPECT_TRUE(is_null || taken.null_margin == taken.logprob - of_null);
          EXPECT_GE(taken.alternative, rest);  // one that was dropped counts with what it had
          EXPECT_LE(taken.alternative, std::max(best, of_null + static_cast<double>(bias)));
          ++(is_null ? nulls : values);
        }
      };
      engine.run(
          [&] { return next < stacks.size() ? std::optional(std::move(stacks[next++])) : std::nullopt; },
          check);
    }
  }
  EXPECT_GT(nulls, 50);
  EXPECT_GT(values, 50);
}

}  // namespace
}  // namespace sheaf

// The search for the likeliest span finds what trying every span finds, and the same in every packing.
#include <gtest/gtest.h>

#include "core/methods/method.h"
#include "core/plan/planner.h"
#include "core/task/prompt_text.h"
#include "core/task/record_row.h"
#include "tests/engine/decode.h"
#include "tests/engine/delayed_backend.h"
#include "tests/made_up_tokenizer.h"
#include "tests/random_model.h"

namespace sheaf {
namespace {

/// Jobs that copy: answers without quotes, or values in quotes.
struct Searching {
  Searching(uint32_t seed, TaskKind kind, int words, int records_wanted = 1) : random(seed) {
    for (int i = 0; i < records_wanted; ++i) {
      Record record;
      record.id = i;
      record.category = "Tea";
      record.document = test::random_document(random, words);
      record.questions = {{"a", "Who?", {}, {}}, {"b", "Where was it?", {}, {}}};
      text += record.document;
      records.push_back(std::move(record));
    }
    tokenizer.emplace(test::random_tokenizer(random, text, 60));
    model = test::make_random_model({.vocab = tokenizer->vocab_size()}, seed);
    job.task.kind = kind;
    job.task.answers = AnswerKind::span;
    job.input.questions = "questions";
    job.method.name = kind == TaskKind::ask ? "ippd" : "hpd";
    job.method.search = SpanSearch::likeliest;
    job.method.search_tokens = 1'000'000;
    job.output.confidence = true;
  }

  std::vector<Stack> stacks(const Builder& builder) {
    task = make_task(*tokenizer, chat_template("plain"), job, schema);
    std::vector<RecordParts> parts;
    for (ReadyRecord& ready : make_ready(*task, records)) {
      EXPECT_EQ(ready.refused, "");
      ready.parts.record = static_cast<int32_t>(parts.size());
      parts.push_back(std::move(ready.parts));
    }
    std::vector<Stack> built;
    builder.build(parts, built);
    return built;
  }

  std::mt19937 random;
  std::string text;
  std::vector<Record> records;
  std::optional<test::MadeUpTokenizer> tokenizer;
  Model model;
  Job job;
  Schema schema{{{"Tea", {{"Brand", "", ValueType::span}, {"Origin", "", ValueType::span}}}}};
  std::unique_ptr<Task> task;
};

/// Every sequence of tokens that completes an allowed answer in time; none where there are too many.
void list_answers(const AllowedAnswers& allowed, AllowedAnswers::Node node, int32_t left, Tokens& begun,
                  std::vector<Tokens>& all) {
  if (left == 0 || all.size() > 4000) return;
  const Tokens next(allowed.allowed(node).begin(), allowed.allowed(node).end());
  for (const TokenId token : next) {
    begun.push_back(token);
    if (const AllowedAnswers::Node after = allowed.advance(node, token); after < 0)
      all.push_back(begun);
    else
      list_answers(allowed, after, left - 1, begun, all);
    begun.pop_back();
  }
}

/// The log-probability of each answer, decoded as the only one that is allowed.
std::vector<double> force(Backend& backend, const Stack& asked, const Slot& slot,
                          const std::vector<Tokens>& answers, const EngineOptions& options) {
  Stack stack;
  stack.segments = asked.segments;
  std::vector<Sight> sees = stack.segments[slot.prompt].sees;
  sees.push_back({slot.prompt});
  for (size_t i = 0; i < answers.size(); ++i) {
    Slot forced;
    forced.prompt = slot.prompt;
    forced.answer = stack.add_after(sees, Role::value, {});
    forced.max_tokens = static_cast<int32_t>(answers[i].size());
    forced.allowed = std::make_shared<AnswerTrie>(std::vector<Tokens>{answers[i]}, -1);
    forced.question = static_cast<int32_t>(i);
    stack.slots.push_back(std::move(forced));
  }
  std::vector<Stack> stacks;
  stacks.push_back(std::move(stack));
  const test::Answers decoded = test::decode(backend, std::move(stacks), options);
  std::vector<double> logprobs;
  for (size_t i = 0; i < answers.size(); ++i) {
    const Answer& answer = decoded.at({0, static_cast<int32_t>(i)});
    EXPECT_EQ(answer.tokens, answers[i]);
    logprobs.push_back(answer.logprob);
  }
  return logprobs;
}

void expect_best(const Slot& slot, const Answer& found, const std::vector<Tokens>& answers,
                 const std::vector<double>& logprobs) {
  const double norm = static_cast<double>(slot.search->length_norm),
               bias = static_cast<double>(slot.watch->bias);
  const auto score = [&](size_t i) {
    return norm == 0 ? logprobs[i] : logprobs[i] / std::pow(static_cast<double>(answers[i].size()), norm);
  };
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  double best = kNone, best_value = kNone, of_null = kNone;
  size_t wanted = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const bool null = answers[i] == slot.watch->null;
    (null ? of_null : best_value) = null ? score(i) : std::max(best_value, score(i));
    if (const double own = score(i) + (null ? bias : 0); own > best) {
      best = own;
      wanted = i;
    }
  }
  EXPECT_EQ(found.tokens, answers[wanted]);
  EXPECT_EQ(found.ending, Ending::chosen);
  EXPECT_EQ(found.logprob, logprobs[wanted]) << "not the same to the bit";
  const size_t null = static_cast<size_t>(std::ranges::find(answers, slot.watch->null) - answers.begin());
  ASSERT_LT(null, answers.size());
  EXPECT_EQ(found.null_logprob, logprobs[null]);
  if (wanted == null) {
    EXPECT_GE(found.null_margin, best_value - of_null) << "an upper bound";
  } else {
    EXPECT_DOUBLE_EQ(found.null_margin, best_value - of_null);
  }
}

TEST(LikeliestSpan, IsWhatTryingEverySpanFinds) {
  int tried = 0, nulls = 0, changed = 0;
  for (uint32_t seed = 0; seed < 24; ++seed)
    for (const TaskKind kind : {TaskKind::ask, TaskKind::extract})
      for (const float norm : {0.0f, 0.6f}) {
        Searching searching(seed, kind, 2 + static_cast<int>(seed % 3));
        // Null's tokens, and a few more.
        const auto null = static_cast<int32_t>(encode_part(*searching.tokenizer, " null").size());
        searching.job.method.max_value_tokens = std::max(4, null);
        searching.job.method.length_norm = norm;
        searching.job.method.null_bias = seed % 4 == 0 ? 3.0f : -8.0f;
        const auto backend = make_reference_backend(searching.model);
        const EngineOptions options{.tokens_per_step = 64, .pages = 60000};
        const test::Answers found =
            test::decode(*backend, searching.stacks(make_builder(searching.job.method)), options);
        searching.job.method.search = SpanSearch::greedy;
        const test::Answers greedy =
            test::decode(*backend, searching.stacks(make_builder(searching.job.method)), options);
        searching.job.method.search = SpanSearch::likeliest;
        for (const auto& [key, answer] : greedy) changed += answer.tokens != found.at(key).tokens;
        const std::vector<Stack> stacks = searching.stacks(make_separate_builder(searching.job.method));
        for (const Stack& stack : stacks)
          for (const Slot& slot : stack.slots) {
            std::vector<Tokens> answers;
            Tokens begun;
            list_answers(*slot.allowed, AllowedAnswers::root, slot.max_tokens, begun, answers);
            if (answers.empty() || answers.size() > 1500) continue;
            const Answer& answer = found.at({slot.record, slot.question});
            expect_best(slot, answer, answers, force(*backend, stack, slot, answers, options));
            nulls += answer.tokens == slot.watch->null;
            ++tried;
          }
      }
  EXPECT_GT(tried, 40);
  EXPECT_GT(nulls, 5);
  EXPECT_GT(changed, 20) << "greedy decoding found others";
}

TEST(LikeliestSpan, IsTheSameInEveryPacking) {
  for (uint32_t seed = 0; seed < 4; ++seed)
    for (const TaskKind kind : {TaskKind::ask, TaskKind::extract}) {
      Searching searching(seed, kind, 9, 4);
      searching.job.method.max_value_tokens = 10;
      searching.job.method.search_tokens = 200;
      const auto backend = make_reference_backend(searching.model);
      const auto quick = make_quick_backend(searching.model, 2);
      const EngineOptions options{.tokens_per_step = 64, .pages = 4000};
      EngineOptions small = options;
      small.tokens_per_step = 9;
      const Builder packed = make_builder(searching.job.method),
                    separate = make_separate_builder(searching.job.method);
      const auto decode = [&](Backend& by, const Builder& builder, const EngineOptions& with, int every = 0) {
        return test::decode(by, searching.stacks(builder), with, nullptr, every);
      };
      const auto wanted = decode(*backend, separate, options);
      test::expect_same(wanted, decode(*backend, packed, options), "packed");
      test::expect_same(wanted, decode(*backend, packed, small, 3), "small steps with interruptions");
      test::Delayed delayed(*backend, 2, test::When::at_finish);
      test::expect_same(wanted, decode(delayed, packed, small), "two steps at once");
      test::expect_same(decode(*quick, separate, options), decode(*quick, packed, small), "quick kernels");
      EngineOptions lookup = options;
      lookup.speculation.lookup = true;
      lookup.speculation.sparing = false;
      test::expect_same(wanted, decode(*backend, packed, lookup), "speculation leaves them alone");
    }
}

TEST(LikeliestSpan, EndsAtItsLimitAndSaysSo) {
  int64_t cut = 0;
  for (uint32_t seed = 0; seed < 5; ++seed) {
    Searching searching(seed, TaskKind::ask, 12, 3);
    searching.job.method.search_tokens = 3;
    searching.job.method.length_norm = 1;  // so that longer spans may win
    const auto backend = make_reference_backend(searching.model);
    EngineStats stats;
    const auto answers = test::decode(*backend, searching.stacks(make_builder(searching.job.method)),
                                      {.tokens_per_step = 64, .pages = 4000}, &stats);
    int64_t said = 0;
    for (const auto& [key, answer] : answers) said += answer.ending == Ending::searched;
    EXPECT_LE(said, stats.cut_searches) << "one that is not complete says that it was cut";
    EXPECT_EQ(stats.searched_answers, 6);
    // The last way that is followed may be longer than what is left.
    EXPECT_LE(stats.searched_tokens, 6 * (3 + searching.job.method.max_value_tokens));
    for (size_t i = 0; i < searching.records.size(); ++i) {
      const std::vector<Answer> own{answers.at({static_cast<int32_t>(i), 0}),
                                    answers.at({static_cast<int32_t>(i), 1})};
      const Row row = searching.task->row(searching.records[i], own);
      for (size_t q = 0; q < own.size(); ++q) {
        const RowAnswer& read = std::get<std::vector<QuestionAnswer>>(row.content)[q].answer;
        if (own[q].ending == Ending::searched) {
          EXPECT_NE(read.note.find("method.search_tokens"), std::string::npos);
        }
        if (const auto* value = std::get_if<std::string>(&read.value)) {
          EXPECT_NE(searching.records[i].document.find(*value), std::string::npos) << *value;
        }
      }
    }
    cut += stats.cut_searches;
  }
  EXPECT_GT(cut, 0);
}

TEST(LikeliestSpan, NeverLessLikelyThanTheGreedyOne) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    Searching searching(seed, TaskKind::ask, 10, 4);
    const auto backend = make_reference_backend(searching.model);
    const EngineOptions options{.tokens_per_step = 64, .pages = 4000};
    const Builder builder = make_builder(searching.job.method);
    const auto likeliest = test::decode(*backend, searching.stacks(builder), options);
    searching.job.method.search = SpanSearch::greedy;
    const auto greedy = test::decode(*backend, searching.stacks(builder), options);
    for (const auto& [key, answer] : greedy) {
      if (answer.ending != Ending::chosen) continue;
      EXPECT_GE(likeliest.at(key).logprob, answer.logprob);
    }
  }
}

}  // namespace
}  // namespace sheaf

// From a stream of records to answers in input order, with a task that needs no tokenizer.
#include "core/plan/pipeline.h"

#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <random>
#include <set>

#include "core/base/error.h"
#include "core/engine/backend.h"
#include "core/plan/planner.h"
#include "tests/plan/count_task.h"

namespace sheaf {
namespace {

using test::CountTask, test::kNoGroups, test::ListCorpus, test::make_record;

/// Answers in memory, with keys that can be read.
class Remembered : public AnswerStore {
 public:
  std::vector<AnswerKey> keys(const Record& record, const RecordParts& parts, bool together) override {
    std::vector<AnswerKey> made;
    for (size_t q = 0; q < parts.questions().size(); ++q) {
      AnswerKey& key = made.emplace_back();
      key.fill(0);
      key[0] = static_cast<uint8_t>(parts.document.empty() ? 0 : parts.document[0]);
      key[1] = static_cast<uint8_t>(parts.document.size());
      key[2] = static_cast<uint8_t>(q);
      key[3] = static_cast<uint8_t>(record.category.size());
      key[4] = together ? 1 : 0;
    }
    return made;
  }
  bool knows(const AnswerKey& key) override { return find(key).has_value(); }
  std::optional<Answer> find(const AnswerKey& key) override {
    const std::lock_guard lock(mutex_);
    const auto found = answers.find(key);
    return found == answers.end() ? std::nullopt : std::optional(found->second);
  }
  void add(const AnswerKey& key, const Answer& answer) override {
    const std::lock_guard lock(mutex_);
    answers.try_emplace(key, answer);
  }
  std::map<AnswerKey, Answer> answers;

 private:
  std::mutex mutex_;
};

struct Seen {
  int64_t asked = 0;  ///< answers that the engine decoded
  std::vector<int> ids;
  std::vector<std::string> events;  ///< rows, rejects and ends of windows as they came
  std::map<int, Outcome> decoded;   ///< without the answers
  std::set<int> rejects;
  PipelineStats stats;
  std::map<std::string, BinCount> bins;
};

Seen run(std::vector<std::variant<Record, Reject>> rows, const Job::Method& method, int32_t window,
         int32_t context = 1000, int32_t pages = 1000, int64_t skipped = 0,
         TooLong too_long = TooLong::refuse, AnswerStore* known = nullptr) {
  ModelConfig config;
  config.vocab = 10;
  CountingBackend backend(config, 1, 32);
  const StopRules rules(10, {});
  Engine engine(backend, rules, {.tokens_per_step = 32, .pages = pages, .page_size = 4});
  CountTask task;
  Planner planner(make_builder(method), {context, method.prompt_tokens,
                                         [&](const Stack& stack) { return engine.fits(stack); }, too_long});
  ListCorpus corpus(std::move(rows));
  corpus.skip_to(skipped);
  Pipeline pipeline(corpus, task, planner, engine, window);
  pipeline.known.store = known;
  pipeline.between_groups = kNoGroups;
  Seen outcome;
  pipeline.on_window = [&](int64_t position) { outcome.events.push_back("end " + std::to_string(position)); };
  EXPECT_TRUE(pipeline.run(
      [&](const Record& record, const Outcome& decoded) {
        EXPECT_EQ(decoded.answers.size(), 3u * static_cast<size_t>(decoded.parts));
        for (const Answer& answer : decoded.answers) EXPECT_EQ(answer.tokens.size(), 5u);
        outcome.ids.push_back(record.id.get<int>());
        outcome.decoded[record.id.get<int>()] = decoded;
        outcome.events.push_back("row " + record.id.dump());
      },
      [&](const Reject& reject) {
        outcome.rejects.insert(reject.id.get<int>());
        outcome.events.push_back("reject " + reject.id.dump());
      }));
  outcome.asked = engine.stats().answers;
  outcome.stats = pipeline.stats();
  outcome.bins = planner.bins();
  return outcome;
}

TEST(Pipeline, KeepsInputOrderAcrossBinsAndWindows) {
  std::vector<std::variant<Record, Reject>> rows;
  std::vector<int> expected;
  for (int i = 0; i < 100; ++i) {
    rows.push_back(make_record(i, i % 3 ? "tea" : "shoes", std::to_string(1 + i % 17)));
    expected.push_back(i);
  }
  for (const char* name : {"hpd", "prefix", "separate"}) {
    for (int32_t window : {1, 7, 1000}) {
      Job::Method method;
      method.name = name;
      const Seen outcome = run(rows, method, window);
      EXPECT_EQ(outcome.ids, expected) << name << ", window " << window;
      EXPECT_EQ(outcome.stats.records, 100);
      EXPECT_EQ(outcome.stats.decoded, 100);
      EXPECT_EQ(outcome.bins.at("tea").records, 66);
    }
  }
}

TEST(Pipeline, KnownAnswersAreNotDecoded) {
  std::vector<std::variant<Record, Reject>> rows;
  for (int i = 0; i < 200; ++i)  // 10 × 7 different documents in two categories
    rows.push_back(make_record(i, i % 3 ? "tea" : "shoes", std::to_string(1 + i % 7)));
  rows.push_back(make_record(200, "tea", "bad"));
  std::mt19937 random(9);
  for (const bool positional : {false, true}) {
    for (const int32_t window : {1, 16, 1000}) {
      Job::Method method;
      method.documents = 5;
      if (positional) method.values = ValueSight::positional;
      const Seen plain = run(rows, method, window);
      EXPECT_EQ(plain.asked, 600);
      Remembered known;
      const Seen first = run(rows, method, window, 1000, 1000, 0, TooLong::refuse, &known);
      EXPECT_EQ(first.events, plain.events);
      EXPECT_EQ(first.asked, static_cast<int64_t>(known.answers.size())) << "equal ones are decoded once";
      EXPECT_EQ(first.asked + first.stats.reused, 600);
      EXPECT_EQ(first.stats.decoded, 200);
      const Seen again = run(rows, method, window, 1000, 1000, 0, TooLong::refuse, &known);
      EXPECT_EQ(again.events, plain.events);
      EXPECT_EQ(again.asked, 0);
      EXPECT_EQ(again.stats.decoded, 200);
      const size_t all = known.answers.size();
      std::erase_if(known.answers, [&](const auto&) { return random() % 5 == 0; });
      const auto lost = static_cast<int64_t>(all - known.answers.size());
      const Seen some = run(rows, method, window, 1000, 1000, 0, TooLong::refuse, &known);
      EXPECT_EQ(some.events, plain.events);
      if (positional)
        EXPECT_GT(some.asked, lost) << "all of a record, or nothing";
      else
        EXPECT_EQ(some.asked, lost);
      EXPECT_EQ(known.answers.size(), all);
    }
  }
}

TEST(Pipeline, PromptsWithFewQuestionsGiveTheSameRows) {
  std::vector<std::variant<Record, Reject>> rows;
  for (int i = 0; i < 40; ++i)
    rows.push_back(make_record(i, i % 3 ? "tea" : "shoes", std::to_string(i % 5 == 4 ? 90 : 1 + i % 7)));
  for (const TooLong too_long : {TooLong::refuse, TooLong::truncate, TooLong::split}) {
    Job::Method method;
    const Seen all = run(rows, method, 16, 60, 1000, 0, too_long);
    for (const int32_t most : {1, 2, 4}) {
      method.questions = most;
      const Seen seen = run(rows, method, 16, 60, 1000, 0, too_long);
      EXPECT_EQ(seen.events, all.events) << most;
      EXPECT_EQ(seen.asked, all.asked) << most;
    }
  }
}

TEST(Pipeline, AnswersThatDependOnNeighboursAreNotKnown) {
  std::vector<std::variant<Record, Reject>> rows;
  for (int i = 0; i < 20; ++i) rows.push_back(make_record(i, "tea", "3"));
  Job::Method method;
  method.stacking = Stacking::joint;
  method.documents = 1;
  Remembered known;
  EXPECT_EQ(run(rows, method, 8, 1000, 1000, 0, TooLong::refuse, &known).asked, 60);
  EXPECT_TRUE(known.answers.empty());
}

TEST(Pipeline, DocumentsThatDoNotFitGiveNoKnownAnswers) {
  std::vector<std::variant<Record, Reject>> rows;
  for (int i = 0; i < 12; ++i) rows.push_back(make_record(i * 10, "tea", i % 2 ? "90" : "4"));
  Job::Method method;
  method.documents = 3;
  for (const TooLong too_long : {TooLong::refuse, TooLong::truncate, TooLong::split}) {
    for (const int32_t window : {4, 100}) {
      const Seen plain = run(rows, method, window, 60, 1000, 0, too_long);
      Remembered known;
      const Seen seen = run(rows, method, window, 60, 1000, 0, too_long, &known);
      EXPECT_EQ(seen.events, plain.events);
      EXPECT_EQ(known.answers.size(), 3u) << "of the short document";
      EXPECT_EQ(seen.asked, plain.asked - 5 * 3);
      for (const auto& [id, outcome] : plain.decoded) {
        EXPECT_EQ(seen.decoded.at(id).parts, outcome.parts);
        EXPECT_EQ(seen.decoded.at(id).cut_tokens, outcome.cut_tokens);
      }
    }
  }
}

TEST(Pipeline, BadRowsCostOnlyThemselves) {
  std::vector<std::variant<Record, Reject>> rows;
  rows.push_back(make_record(0, "tea", "4"));
  Reject broken;
  broken.id = 1;
  rows.push_back(broken);
  rows.push_back(make_record(2, "tea", "bad"));
  rows.push_back(make_record(3, "tea", "5000"));  // past the model's context
  rows.push_back(make_record(4, "tea", "6"));
  Job::Method method;
  method.documents = 6;
  const Seen outcome = run(rows, method, 100);
  EXPECT_EQ(outcome.ids, (std::vector<int>{0, 4}));
  EXPECT_EQ(outcome.rejects, (std::set<int>{1, 2, 3}));
  EXPECT_EQ(outcome.stats.rejects, 3);
}

TEST(Pipeline, WindowsEndWhereTheyWouldHaveWhereverReadingBegan) {
  std::vector<std::variant<Record, Reject>> rows;
  for (int i = 0; i < 10; ++i) {
    if (i == 1 || i == 9) {
      Reject broken;
      broken.id = i;
      rows.push_back(broken);
    } else {
      rows.push_back(make_record(i, "tea", i == 2 || i == 6 ? "5000" : "4"));
    }
  }
  const std::vector<std::string> all = {"row 0", "reject 1", "reject 2", "row 3", "end 4",
                                        "row 4", "row 5",    "reject 6", "row 7", "end 8",
                                        "row 8", "reject 9", "end 10"};
  EXPECT_EQ(run(rows, {}, 4).events, all);
  const std::vector<std::string> rest(all.begin() + 5, all.end());
  EXPECT_EQ(run(rows, {}, 4, 1000, 1000, 4).events, rest);
  EXPECT_EQ(run(rows, {}, 4, 1000, 1000, 5).events, std::vector<std::string>(rest.begin() + 1, rest.end()));
}

/// A corpus in which a signal comes after some rows.
class InterruptedCorpus : public ListCorpus {
 public:
  InterruptedCorpus(std::vector<std::variant<Record, Reject>> rows, int64_t at, std::atomic<bool>& flag)
      : ListCorpus(std::move(rows)), at_(at), flag_(flag) {}
  std::optional<std::variant<Record, Reject>> next() override {
    if (position() == at_) flag_ = true;
    return ListCorpus::next();
  }

 private:
  int64_t at_;
  std::atomic<bool>& flag_;
};

TEST(Pipeline, CompleteRecordsAreKeptAtASignal) {
  // Records 0 and 2 share a bin, which comes first: 2 is complete before 1.
  const std::vector<std::variant<Record, Reject>> rows = {
      make_record(0, "tea", "9"), Reject{}, make_record(2, "cup", "8"), make_record(3, "tea", "7"),
      make_record(4, "cup", "6")};
  ModelConfig config;
  config.vocab = 10;
  CountingBackend backend(config, 1, 32);
  const StopRules rules(10, {});
  std::atomic<bool> interrupted = false;
  EngineOptions options{.tokens_per_step = 32, .pages = 100, .page_size = 4};
  options.interrupted = &interrupted;
  options.prompts = 1;
  Remembered known;
  int64_t position = 0;
  std::vector<int> ids;
  const auto session = [&](int64_t stop_at) {
    interrupted = false;
    Engine engine(backend, rules, options);
    CountTask task;
    Job::Method method;
    method.documents = 1;
    Planner planner(make_builder(method), {1000, 1000, [](const Stack&) { return true; }});
    ListCorpus corpus(rows);
    corpus.skip_to(position);
    Pipeline pipeline(corpus, task, planner, engine, 100);
    pipeline.known.store = &known;
    pipeline.between_groups = kNoGroups;
    pipeline.on_window = [&](int64_t end) { position = end; };
    pipeline.on_step = [&](size_t, const EngineStats&) {
      if (pipeline.stats().decoded == stop_at) interrupted = true;
    };
    pipeline.run([&](const Record& record, const Outcome&) { ids.push_back(record.id.get<int>()); },
                 [&](const Reject&) { ids.push_back(-1); });
    return std::pair{pipeline.stats(), engine.stats().answers};
  };
  const auto [first, decoded] = session(2);
  EXPECT_EQ(ids, std::vector<int>{0});
  EXPECT_EQ(position, 1) << "the reject comes with the record after it";
  EXPECT_EQ(first.ahead, 1) << "record 3";
  EXPECT_EQ(known.answers.size(), 6u);
  const auto [second, more] = session(-1);
  EXPECT_EQ(ids, (std::vector<int>{0, -1, 2, 3, 4}));
  EXPECT_EQ(position, 5);
  EXPECT_EQ(more, 6) << "of records 2 and 4";
  EXPECT_EQ(second.reused, 3);
}

TEST(Pipeline, RecordsArePassedOnBeforeTheirWindowIsComplete) {
  std::vector<std::variant<Record, Reject>> rows;
  for (int i = 0; i < 20; ++i) rows.push_back(make_record(i, "tea", std::to_string(1 + i)));
  Job::Method method;
  method.documents = 1;
  for (const bool at_once : {false, true}) {
    ModelConfig config;
    config.vocab = 10;
    CountingBackend backend(config, 1, 32);
    const StopRules rules(10, {});
    Engine engine(backend, rules, {.tokens_per_step = 32, .pages = 100, .page_size = 4, .prompts = 1});
    CountTask task;
    Planner planner(make_builder(method), {1000, 1000, [](const Stack&) { return true; }});
    ListCorpus corpus(rows);
    Pipeline pipeline(corpus, task, planner, engine, 100);
    pipeline.between_groups = at_once ? std::chrono::milliseconds(0) : kNoGroups;
    std::vector<int64_t> ends;
    int64_t emitted = 0;
    pipeline.on_window = [&](int64_t end) {
      EXPECT_EQ(end, emitted);
      ends.push_back(end);
    };
    EXPECT_TRUE(pipeline.run([&](const Record& record, const Outcome&) { EXPECT_EQ(record.id, emitted++); },
                             [](const Reject&) {}));
    EXPECT_EQ(emitted, 20);
    EXPECT_EQ(ends.size(), at_once ? 20u : 1u);
  }
}

TEST(Pipeline, HalfAWindowIsNeverEnded) {
  // Rejects only: such a window needs no decoding to be complete.
  std::vector<std::variant<Record, Reject>> rows(10, Reject{});
  ModelConfig config;
  config.vocab = 10;
  CountingBackend backend(config, 1, 32);
  const StopRules rules(10, {});
  std::atomic<bool> interrupted = false;
  EngineOptions options{.tokens_per_step = 32, .pages = 100, .page_size = 4};
  options.interrupted = &interrupted;
  Engine engine(backend, rules, options);
  CountTask task;
  Planner planner(make_builder({}), {1000, 1000, [](const Stack&) { return true; }});
  InterruptedCorpus corpus(rows, 6, interrupted);
  Pipeline pipeline(corpus, task, planner, engine, 4);
  pipeline.between_groups = kNoGroups;
  std::vector<int64_t> ends;
  int rejects = 0;
  pipeline.on_window = [&](int64_t position) { ends.push_back(position); };
  EXPECT_FALSE(pipeline.run([](const Record&, const Outcome&) {}, [&](const Reject&) { ++rejects; }));
  // The first window may or may not have got through before the signal; the second never.
  EXPECT_LE(ends.size(), 1u);
  for (const int64_t end : ends) EXPECT_EQ(end, 4);
  EXPECT_EQ(rejects, ends.empty() ? 0 : 4);
}

TEST(Planner, StacksByCountBudgetAndLimits) {
  std::vector<std::variant<Record, Reject>> rows;
  for (int i = 0; i < 12; ++i) rows.push_back(make_record(i, "tea", i < 10 ? "9" : "8"));
  Job::Method method;
  method.documents = 5;
  EXPECT_EQ(run(rows, method, 100).bins.at("tea").stacks, 3);
  method.documents = 0;  // as many as the budget holds: 10 + n × (9 + 1 + 3 × 7)
  method.prompt_tokens = 10 + 4 * 31;
  EXPECT_EQ(run(rows, method, 100).bins.at("tea").stacks, 3);
  method.prompt_tokens = 100000;
  EXPECT_EQ(run(rows, method, 100).bins.at("tea").stacks, 1);
  // A stack takes 3 pages of 4 tokens, and 3 + 3 × 2 more per record: 40 pages hold 4 records, so 12 are
  // halved twice.
  EXPECT_EQ(run(rows, method, 100, 1000, 40).bins.at("tea").stacks, 4);
}

TEST(Planner, ARecordThatNoPromptHoldsIsInNoBin) {
  std::vector<std::variant<Record, Reject>> rows;
  for (int i = 0; i < 6; ++i) rows.push_back(make_record(i, "tea", i == 2 ? "900" : "9"));
  Job::Method method;
  method.documents = 3;
  const auto ran = run(rows, method, 100, 100);
  EXPECT_EQ(ran.stats.records, 5);
  EXPECT_EQ(ran.bins.at("tea").records, 5);
}

/// One row with very many short questions.
class WideTask : public Task {
 public:
  std::string bin_name(const Record&) const override { return "wide"; }
  RecordParts parts(const Record&) override {
    auto bin = std::make_shared<BinParts>();
    bin->instruction = {1};
    for (int i = 0; i < 40'000; ++i) bin->questions.push_back({{3}, 1, Stop::line, nullptr});
    RecordParts parts;
    parts.bin = bin;
    parts.document = {2};
    return parts;
  }
  Row row(const Record&, const std::vector<Answer>&) const override { return {}; }
};

// Each key of a chain lists all before it: twenty gigabytes, were the chain built to see that it is too long.
TEST(Planner, AChainThatCannotFitIsNotBuilt) {
  WideTask task;
  Job::Method method;
  method.values = ValueSight::positional;
  Planner planner(make_builder(method), {50'000, 4096, [](const Stack&) { return true; }});
  const Record record = make_record(1, "wide", "1");
  const Plan plan = planner.plan(make_ready(task, std::span(&record, 1)));
  ASSERT_EQ(plan.refused.size(), 1u);
  EXPECT_NE(plan.refused[0].second.find("80001 positions"), std::string::npos) << plan.refused[0].second;
  EXPECT_EQ(plan.refused[0].second.find("model.context"), std::string::npos) << plan.refused[0].second;
  Planner longer(make_builder(method),
                 {50'000, 4096, [](const Stack&) { return true; }, TooLong::refuse, 131'072});
  const Plan advised = longer.plan(make_ready(task, std::span(&record, 1)));
  ASSERT_EQ(advised.refused.size(), 1u);
  EXPECT_NE(advised.refused[0].second.find("unless model.context asks for more"), std::string::npos)
      << advised.refused[0].second;
}

TEST(Planner, CountsContextsNotRows) {
  std::vector<std::variant<Record, Reject>> rows;
  // Two contexts, ten rows each, mixed: one prompt holds both.
  for (int i = 0; i < 20; ++i) rows.push_back(make_record(i % 2 ? 11 : 22, "tea", "9"));
  Job::Method method;
  method.documents = 2;
  EXPECT_EQ(run(rows, method, 100).bins.at("tea").stacks, 1);
  method.documents = 1;
  EXPECT_EQ(run(rows, method, 100).bins.at("tea").stacks, 2);
}

TEST(Pipeline, EveryRowMayBeRefused) {
  std::vector<std::variant<Record, Reject>> rows;
  for (int i = 0; i < 50; ++i) rows.push_back(make_record(i, "tea", "5000"));
  const Seen outcome = run(rows, {}, 5);
  EXPECT_EQ(outcome.rejects.size(), 50u);
  EXPECT_TRUE(outcome.ids.empty());
}

TEST(Planner, LongDocumentsAreCutOrSplitWhereAsked) {
  const std::vector<std::variant<Record, Reject>> rows = {make_record(1, "tea", "400"),
                                                          make_record(2, "tea", "50")};
  Job::Method method;
  for (const char* name : {"hpd", "prefix", "separate"}) {
    method.name = name;
    // 10 tokens of instruction, the document, 1 of opening, 2 of the question, 5 answered of which 4 are fed.
    const int32_t room = 100 - 10 - 1 - 2 - 4;
    EXPECT_EQ(run(rows, method, 10, 100).rejects, std::set<int>{1}) << name;

    const Seen cut = run(rows, method, 10, 100, 1000, 0, TooLong::truncate);
    EXPECT_EQ(cut.ids, (std::vector<int>{1, 2})) << name;
    EXPECT_EQ(cut.decoded.at(1).cut_tokens, 400 - room) << name;
    EXPECT_EQ(cut.decoded.at(1).document_tokens, 400);
    EXPECT_EQ(cut.decoded.at(1).parts, 1);
    EXPECT_EQ(cut.decoded.at(2).cut_tokens, 0);

    const Seen split = run(rows, method, 10, 100, 1000, 0, TooLong::split);
    EXPECT_EQ(split.ids, (std::vector<int>{1, 2})) << name;
    const int32_t stride = room - room / 8;
    EXPECT_EQ(split.decoded.at(1).parts, 1 + (400 - room + stride - 1) / stride) << name;
    EXPECT_EQ(split.decoded.at(1).cut_tokens, 0);
    EXPECT_EQ(split.decoded.at(2).parts, 1);
  }
  // The key/value memory can be what is too small.
  method.name = "hpd";
  EXPECT_EQ(run(rows, method, 10, 1000, 40).rejects, std::set<int>{1});
  EXPECT_GT(run(rows, method, 10, 1000, 40, 0, TooLong::truncate).decoded.at(1).cut_tokens, 250);
  // Where the questions alone are too long, there is nothing to cut.
  EXPECT_EQ(run(rows, method, 10, 16, 1000, 0, TooLong::split).rejects, (std::set<int>{1, 2}));
}

/// A corpus that breaks after some rows.
class BrokenCorpus : public ListCorpus {
 public:
  BrokenCorpus(std::vector<std::variant<Record, Reject>> rows, int64_t at)
      : ListCorpus(std::move(rows)), at_(at) {}
  std::optional<std::variant<Record, Reject>> next() override {
    if (position() == at_) fail("the disk is gone");
    return ListCorpus::next();
  }

 private:
  int64_t at_;
};

TEST(Pipeline, AnErrorOfAnyThreadEndsTheRun) {
  std::vector<std::variant<Record, Reject>> rows;
  for (int i = 0; i < 400; ++i) rows.push_back(make_record(i, "tea", "4"));
  for (const bool reading : {true, false}) {
    ModelConfig config;
    config.vocab = 10;
    CountingBackend backend(config, 1, 32);
    const StopRules rules(10, {});
    Engine engine(backend, rules, {.tokens_per_step = 32, .pages = 100, .page_size = 4});
    CountTask task;
    Planner planner(make_builder({}), {1000, 1000, [](const Stack&) { return true; }});
    BrokenCorpus corpus(rows, reading ? 203 : -1);
    Pipeline pipeline(corpus, task, planner, engine, 4);
    pipeline.between_groups = kNoGroups;
    int emitted = 0;
    int64_t end = 0;
    pipeline.on_window = [&](int64_t position) { end = position; };
    try {
      pipeline.run(
          [&](const Record& record, const Outcome&) {
            EXPECT_EQ(record.id, emitted);
            if (!reading && emitted == 101) fail("the disk is full");
            ++emitted;
          },
          [](const Reject&) {});
      ADD_FAILURE() << "no error came through";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), reading ? "the disk is gone" : "the disk is full");
    }
    // Windows end whole or not at all.
    EXPECT_EQ(end % 4, 0);
    EXPECT_LE(end, reading ? 200 : 100);
    if (!reading) {
      EXPECT_EQ(emitted, 101);
    }
  }
}

TEST(Pipeline, LongDocumentsMakeShortWindows) {
  // A document's length in bytes decides, not in tokens.
  std::vector<std::variant<Record, Reject>> rows;
  for (int i = 0; i < 10; ++i) rows.push_back(make_record(i, "tea", "4" + std::string(12 << 20, ' ')));
  const auto ends = [&](int64_t skipped) {
    std::vector<std::string> found;
    for (const std::string& event : run(rows, {}, 8, 1000, 1000, skipped).events)
      if (event.starts_with("end")) found.push_back(event);
    return found;
  };
  EXPECT_EQ(ends(0), (std::vector<std::string>{"end 3", "end 6", "end 8", "end 10"}));
  EXPECT_EQ(ends(3), (std::vector<std::string>{"end 6", "end 8", "end 10"})) << "as in one go";
}

TEST(Pipeline, AnEmptyCorpusGivesNothing) {
  EXPECT_TRUE(run({}, {}, 10).ids.empty());
}

}  // namespace
}  // namespace sheaf

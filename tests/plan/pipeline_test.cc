// From a stream of items to answers in input order, with a task that needs no tokenizer.
#include "core/plan/pipeline.h"

#include <atomic>
#include <gtest/gtest.h>
#include <set>

#include "core/error.h"
#include "core/plan/counting_backend.h"
#include "core/plan/planner.h"

namespace sheaf {
namespace {

/// Items whose document is a number of tokens and whose category is their bin.
class CountTask : public Task {
 public:
  std::string bin_name(const Item& item) const override { return item.category; }
  ItemParts parts(const Item& item) override {
    if (item.document == "bad") refuse("this one is bad");
    auto& bin = bins_[item.category];
    if (!bin) {
      auto made = std::make_shared<BinParts>();
      made->instruction = Tokens(10, 1);
      made->opening = {2};
      for (int i = 0; i < 3; ++i) made->questions.push_back({{3, 4}, 5, Stop::line, nullptr});
      bin = made;
    }
    ItemParts parts;
    parts.bin = bin;
    parts.document =
        Tokens(static_cast<size_t>(std::stoi(item.document)), static_cast<TokenId>(item.id.get<int>() % 10));
    return parts;
  }
  nlohmann::ordered_json row(const Item&, const std::vector<Answer>&) const override { return {}; }

 private:
  std::map<std::string, std::shared_ptr<const BinParts>> bins_;
};

class ListCorpus : public Corpus {
 public:
  explicit ListCorpus(std::vector<std::variant<Item, Reject>> rows) : rows_(std::move(rows)) {}
  std::optional<std::variant<Item, Reject>> next() override {
    if (at_ == rows_.size()) return std::nullopt;
    return rows_[at_++];
  }
  int64_t position() const override { return static_cast<int64_t>(at_); }
  void skip_to(int64_t position) override { at_ = std::min(rows_.size(), static_cast<size_t>(position)); }
  int64_t count_rows() override { return static_cast<int64_t>(rows_.size()); }

 private:
  std::vector<std::variant<Item, Reject>> rows_;
  size_t at_ = 0;
};

Item make_item(int id, const std::string& category, const std::string& document) {
  Item item;
  item.id = id;
  item.category = category;
  item.document = document;
  return item;
}

struct Outcome {
  std::vector<int> ids;
  std::vector<std::string> events;  ///< rows, rejects and ends of windows as they came
  std::set<int> rejects;
  PipelineStats stats;
  std::map<std::string, BinCount> bins;
};

Outcome run(std::vector<std::variant<Item, Reject>> rows, const Job::Method& method, int32_t window,
            int32_t context = 1000, int32_t pages = 1000, int64_t skipped = 0) {
  ModelConfig config;
  config.vocab = 10;
  CountingBackend backend(config, 1, 32);
  const StopRules rules(10, {});
  Engine engine(backend, rules, {.rows_per_step = 32, .pages = pages, .page_size = 4});
  CountTask task;
  Planner planner(task, make_builder(method),
                  {context, method.prompt_tokens, [&](const Stack& stack) { return engine.fits(stack); }});
  ListCorpus corpus(std::move(rows));
  corpus.skip_to(skipped);
  Pipeline pipeline(corpus, planner, engine, window);
  Outcome outcome;
  pipeline.on_window = [&](int64_t position) { outcome.events.push_back("end " + std::to_string(position)); };
  EXPECT_TRUE(pipeline.run(
      [&](const Item& item, const std::vector<Answer>& answers) {
        EXPECT_EQ(answers.size(), 3u);
        for (const Answer& answer : answers) EXPECT_EQ(answer.tokens.size(), 5u);
        outcome.ids.push_back(item.id.get<int>());
        outcome.events.push_back("row " + item.id.dump());
      },
      [&](const Reject& reject) {
        outcome.rejects.insert(reject.id.get<int>());
        outcome.events.push_back("reject " + reject.id.dump());
      }));
  outcome.stats = pipeline.stats();
  outcome.bins = planner.bins();
  return outcome;
}

TEST(Pipeline, KeepsInputOrderAcrossBinsAndWindows) {
  std::vector<std::variant<Item, Reject>> rows;
  std::vector<int> expected;
  for (int i = 0; i < 100; ++i) {
    rows.push_back(make_item(i, i % 3 ? "tea" : "shoes", std::to_string(1 + i % 17)));
    expected.push_back(i);
  }
  for (const char* name : {"hpd", "prefix", "separate"}) {
    for (int32_t window : {1, 7, 1000}) {
      Job::Method method;
      method.name = name;
      const Outcome outcome = run(rows, method, window);
      EXPECT_EQ(outcome.ids, expected) << name << ", window " << window;
      EXPECT_EQ(outcome.stats.items, 100);
      EXPECT_EQ(outcome.stats.decoded, 100);
      EXPECT_EQ(outcome.bins.at("tea").items, 66);
    }
  }
}

TEST(Pipeline, BadRowsCostOnlyThemselves) {
  std::vector<std::variant<Item, Reject>> rows;
  rows.push_back(make_item(0, "tea", "4"));
  Reject broken;
  broken.id = 1;
  rows.push_back(broken);
  rows.push_back(make_item(2, "tea", "bad"));
  rows.push_back(make_item(3, "tea", "5000"));  // past the model's context
  rows.push_back(make_item(4, "tea", "6"));
  Job::Method method;
  method.documents = 6;
  const Outcome outcome = run(rows, method, 100);
  EXPECT_EQ(outcome.ids, (std::vector<int>{0, 4}));
  EXPECT_EQ(outcome.rejects, (std::set<int>{1, 2, 3}));
  EXPECT_EQ(outcome.stats.rejects, 3);
}

TEST(Pipeline, WindowsEndWhereTheyWouldHaveWhereverReadingBegan) {
  std::vector<std::variant<Item, Reject>> rows;
  for (int i = 0; i < 10; ++i) {
    if (i == 1 || i == 9) {
      Reject broken;
      broken.id = i;
      rows.push_back(broken);
    } else {
      rows.push_back(make_item(i, "tea", i == 2 || i == 6 ? "5000" : "4"));
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
  InterruptedCorpus(std::vector<std::variant<Item, Reject>> rows, int64_t at, std::atomic<bool>& flag)
      : ListCorpus(std::move(rows)), at_(at), flag_(flag) {}
  std::optional<std::variant<Item, Reject>> next() override {
    if (position() == at_) flag_ = true;
    return ListCorpus::next();
  }

 private:
  int64_t at_;
  std::atomic<bool>& flag_;
};

TEST(Pipeline, HalfAWindowIsNeverEnded) {
  // Rejects only: such a window needs no decoding to be complete.
  std::vector<std::variant<Item, Reject>> rows(10, Reject{});
  ModelConfig config;
  config.vocab = 10;
  CountingBackend backend(config, 1, 32);
  const StopRules rules(10, {});
  std::atomic<bool> interrupted = false;
  EngineOptions options{.rows_per_step = 32, .pages = 100, .page_size = 4};
  options.interrupted = &interrupted;
  Engine engine(backend, rules, options);
  CountTask task;
  Planner planner(task, make_builder({}), {1000, 1000, [](const Stack&) { return true; }});
  InterruptedCorpus corpus(rows, 6, interrupted);
  Pipeline pipeline(corpus, planner, engine, 4);
  std::vector<int64_t> ends;
  int rejects = 0;
  pipeline.on_window = [&](int64_t position) { ends.push_back(position); };
  EXPECT_FALSE(
      pipeline.run([](const Item&, const std::vector<Answer>&) {}, [&](const Reject&) { ++rejects; }));
  EXPECT_EQ(ends, std::vector<int64_t>{4});
  EXPECT_EQ(rejects, 4);
}

TEST(Planner, StacksByCountBudgetAndLimits) {
  std::vector<std::variant<Item, Reject>> rows;
  for (int i = 0; i < 12; ++i) rows.push_back(make_item(i, "tea", i < 10 ? "9" : "8"));
  Job::Method method;
  method.documents = 5;
  EXPECT_EQ(run(rows, method, 100).bins.at("tea").stacks, 3);
  method.documents = 0;  // as many as the budget holds: 10 + n × (9 + 1 + 3 × 7)
  method.prompt_tokens = 10 + 4 * 31;
  EXPECT_EQ(run(rows, method, 100).bins.at("tea").stacks, 3);
  method.prompt_tokens = 100000;
  EXPECT_EQ(run(rows, method, 100).bins.at("tea").stacks, 1);
  // A stack takes 3 pages of 4 tokens, and 3 + 3 × 2 more per item: 40 pages hold 4 items, so 12 are halved
  // twice.
  EXPECT_EQ(run(rows, method, 100, 1000, 40).bins.at("tea").stacks, 4);
}

TEST(Planner, CountsContextsNotRows) {
  std::vector<std::variant<Item, Reject>> rows;
  // Two contexts, ten rows each, mixed: one prompt holds both.
  for (int i = 0; i < 20; ++i) rows.push_back(make_item(i % 2 ? 11 : 22, "tea", "9"));
  Job::Method method;
  method.documents = 2;
  EXPECT_EQ(run(rows, method, 100).bins.at("tea").stacks, 1);
  method.documents = 1;
  EXPECT_EQ(run(rows, method, 100).bins.at("tea").stacks, 2);
}

TEST(Pipeline, RefusedRowsDoNotPileUp) {
  std::vector<std::variant<Item, Reject>> rows;
  for (int i = 0; i < 50; ++i) rows.push_back(make_item(i, "tea", "5000"));
  const Outcome outcome = run(rows, {}, 5);
  EXPECT_EQ(outcome.rejects.size(), 50u);
  EXPECT_TRUE(outcome.ids.empty());
}

TEST(Pipeline, AnEmptyCorpusGivesNothing) {
  EXPECT_TRUE(run({}, {}, 10).ids.empty());
}

}  // namespace
}  // namespace sheaf

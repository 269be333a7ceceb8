// Several engines of one pipeline: fast, slow, and broken ones.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/engine/backend.h"
#include "core/plan/pipeline.h"
#include "core/plan/planner.h"
#include "tests/plan/count_task.h"

namespace sheaf {
namespace {

using test::CountTask, test::ListCorpus, test::make_record;

/// The steps that each engine has begun, so that one can wait for another whatever the machine runs first.
class BegunSteps {
 public:
  void add(size_t engine) {
    const std::lock_guard lock(mutex_);
    ++steps_[engine];
    changed_.notify_all();
  }
  /// Until `holds(steps of each engine)`; the bound only keeps a broken pipeline from hanging.
  void wait(const std::function<bool(const std::vector<int64_t>&)>& holds) {
    std::unique_lock lock(mutex_);
    if (!late_) late_ = !changed_.wait_for(lock, std::chrono::minutes(1), [&] { return holds(steps_); });
    EXPECT_FALSE(late_) << "an engine waited a minute for another";
  }
  void clear(size_t engines) { steps_.assign(engines, 0); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int64_t> steps_;
  bool late_ = false;
};

/// Slow, or broken after some steps.
class Poor : public CountingBackend {
 public:
  Poor(const ModelConfig& config, int64_t steps, Fault fault = Fault::fatal)
      : CountingBackend(config, 1, 32), steps_(steps), fault_(fault) {}
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    if (before_step) before_step();
    if (steps_-- == 0) throw Error(fault_, "the device is gone");
    if (pause > std::chrono::milliseconds(0)) std::this_thread::sleep_for(pause);
    CountingBackend::step(batch, picked, logits);
  }
  std::function<void()> before_step;
  std::chrono::milliseconds pause{0};

 private:
  int64_t steps_;
  Fault fault_;
};

constexpr int64_t kNever = -1;

/// A pipeline over several engines, which decodes 300 records in windows of 4.
class SeveralEngines : public testing::Test {
 protected:
  Poor& add(int64_t steps = kNever, Fault fault = Fault::fatal) {
    config_.vocab = 10;
    Poor& backend = *backends_.emplace_back(std::make_unique<Poor>(config_, steps, fault));
    EngineOptions options{.tokens_per_step = 32, .pages = 100, .page_size = 4};
    options.interrupted = &interrupted_;
    engines_.push_back(std::make_unique<Engine>(backend, rules_, options));
    return backend;
  }

  /// Every engine counts its steps and then waits until `may_go(its number, steps of each)`.
  void let_wait(const std::function<bool(size_t engine, const std::vector<int64_t>& steps)>& may_go) {
    begun_.clear(backends_.size());
    for (size_t i = 0; i < backends_.size(); ++i)
      backends_[i]->before_step = [this, i, may_go] {
        begun_.add(i);
        begun_.wait([&](const std::vector<int64_t>& steps) { return may_go(i, steps); });
      };
  }
  /// Until engine 0 breaks, it is never behind the others.
  void let_the_first_lead(int64_t breaks_after) {
    let_wait([breaks_after](size_t engine, const std::vector<int64_t>& steps) {
      return steps[0] > breaks_after || steps[0] >= steps[engine];
    });
  }

  /// False where it was interrupted.
  bool run(int stop_after_steps = 0) {
    std::vector<std::variant<Record, Reject>> rows;
    for (int i = 0; i < kRecords; ++i)
      rows.push_back(
          make_record(i, i % 3 ? "tea" : "shoes", i % 50 == 7 ? "bad" : std::to_string(1 + i % 17)));
    ListCorpus corpus(rows);
    CountTask task;
    Planner planner(make_builder({}), {1000, 1000, [](const Stack&) { return true; }});
    std::vector<Engine*> pointers;
    for (const auto& each : engines_) pointers.push_back(each.get());
    Pipeline pipeline(corpus, task, planner, pointers, 4);
    pipeline.between_groups = test::kNoGroups;
    pipeline.on_window = [&](int64_t end) {
      ended_ = end;
      most_ahead_ = std::max(most_ahead_, pipeline.stats().rows_read - end);
      EXPECT_GT(pipeline.engine_stats().steps, 0) << "the last rows come while the run ends";
    };
    pipeline.on_failed = [&](size_t engine, const std::string& why) {
      failed_.push_back(std::to_string(engine) + ": " + why);
    };
    int64_t steps = 0;
    pipeline.on_step = [&](size_t engine, const EngineStats& all) {
      EXPECT_EQ(all.steps, ++steps) << "one step at a time";
      stepped_.insert(engine);
      if (steps == stop_after_steps) interrupted_ = true;
    };
    const bool whole = pipeline.run(
        [&](const Record& record, const Outcome& outcome) {
          EXPECT_EQ(outcome.answers.size(), 3u);
          for (const Answer& answer : outcome.answers) EXPECT_EQ(answer.tokens.size(), 5u);
          ids_.push_back(record.id.get<int>());
        },
        [&](const Reject& reject) { ids_.push_back(reject.id.get<int>()); });
    answers_ = pipeline.engine_stats().answers;
    return whole;
  }

  void expect_all() const {
    ASSERT_EQ(ids_.size(), static_cast<size_t>(kRecords));
    for (int i = 0; i < kRecords; ++i) EXPECT_EQ(ids_[static_cast<size_t>(i)], i);
    EXPECT_EQ(answers_, 3 * (kRecords - 6)) << "a stack that is decoded again is counted once";
    EXPECT_EQ(ended_, kRecords);
  }

  static constexpr int kRecords = 300;
  ModelConfig config_;
  const StopRules rules_{10, {}};
  std::atomic<bool> interrupted_ = false;
  BegunSteps begun_;
  std::vector<std::unique_ptr<Poor>> backends_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<int> ids_;
  std::vector<std::string> failed_;
  std::set<size_t> stepped_;
  int64_t answers_ = 0, ended_ = 0, most_ahead_ = 0;
};

TEST_F(SeveralEngines, GiveRowsInInputOrder) {
  for (int i = 0; i < 3; ++i) add().pause = std::chrono::milliseconds(i);
  // Those that are early hold the prompts of one step; the last one finds windows that are left.
  let_wait([](size_t, const std::vector<int64_t>& steps) { return std::ranges::min(steps) > 0; });
  EXPECT_TRUE(run());
  expect_all();
  EXPECT_EQ(stepped_.size(), 3u);
  EXPECT_TRUE(failed_.empty());
}

TEST_F(SeveralEngines, ASlowEngineHoldsUpNoMoreThanMemoryAllows) {
  add();
  add().pause = std::chrono::milliseconds(20);
  EXPECT_TRUE(run());
  expect_all();
  // Queues of 6 and 4 windows, 16 that are complete, and those in the engines.
  EXPECT_LE(most_ahead_, 4 * 50);
}

TEST_F(SeveralEngines, AFailingEngineGivesItsPromptsToTheOthers) {
  for (const int64_t steps : {0, 1, 7, 40}) {
    backends_.clear(), engines_.clear(), ids_.clear(), failed_.clear();
    add(steps);
    add();
    let_the_first_lead(steps);
    EXPECT_TRUE(run());
    expect_all();
    EXPECT_EQ(failed_, std::vector<std::string>{"0: the device is gone"}) << steps;
  }
}

TEST_F(SeveralEngines, TheLastFailingEngineEndsTheRun) {
  add(5);
  add(9);
  add(20);
  EXPECT_THROW(run(), Error);
  EXPECT_EQ(failed_.size(), 2u);
  for (size_t i = 0; i < ids_.size(); ++i) EXPECT_EQ(ids_[i], static_cast<int>(i));
  EXPECT_EQ(ended_ % 4, 0);
}

TEST_F(SeveralEngines, AnInputErrorEndsTheRunAtOnce) {
  add(3, Fault::input);
  add();
  let_the_first_lead(3);
  EXPECT_THROW(run(), Error);
  EXPECT_TRUE(failed_.empty());
}

TEST_F(SeveralEngines, ASignalStopsAllEngines) {
  for (int i = 0; i < 3; ++i) add();
  EXPECT_FALSE(run(20));
  EXPECT_LT(ids_.size(), static_cast<size_t>(kRecords));
  for (size_t i = 0; i < ids_.size(); ++i) EXPECT_EQ(ids_[i], static_cast<int>(i));
  EXPECT_EQ(ended_, static_cast<int64_t>(ids_.size()));
}

}  // namespace
}  // namespace sheaf

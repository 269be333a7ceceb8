// Several engines in one process: the bytes are those of one.
#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/interrupted.h"
#include "io/files/job_file.h"
#include "io/jobs/run_job.h"
#include "tests/app/running.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;
using test::Running;

constexpr const char* kSchema =
    "categories:\n"
    "  Tea: [{name: Brand}, {name: Form, type: enum, options: [bag, loose]}]\n"
    "  Shoe: [{name: Brand}, {name: Size, type: integer}]\n";

class Devices : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    std::string products, questions, chats;
    for (int i = 0; i < 60; ++i) {
      const std::string text = "Item " + std::to_string(i) + " by Fjord, size " + std::to_string(30 + i % 7);
      products += i == 11 ? "{broken\n"
                          : json{{"n", i}, {"kind", i % 3 ? "Tea" : "Shoe"}, {"text", text}}.dump() + "\n";
      questions += json{{"n", i},
                        {"documents", {text, "Box " + std::to_string(i / 2) + " holds tea."}},
                        {"c", "Box " + std::to_string(i / 2) + " holds tea."},
                        {"q", "What is in " + std::to_string(i) + "?"}}
                       .dump() +
                   "\n";
      chats += json{{"custom_id", "c" + std::to_string(i)},
                    {"method", "POST"},
                    {"url", "/v1/chat/completions"},
                    {"body", {{"model", "m"}, {"messages", {{{"role", "user"}, {"content", text}}}}}}}
                   .dump() +
               "\n";
    }
    scratch_.write("products.jsonl", products);
    scratch_.write("questions.jsonl", questions);
    scratch_.write("chats.jsonl", chats);
    scratch_.write("schema.yaml", kSchema);
  }

  std::string job(const std::string& name, const std::string& input, const std::string& task,
                  const std::string& method, int tokens = 6) const {
    return scratch_.write(
        name, "model: {path: " + model_ + ", chat: plain}\ninput: {path: " + scratch_.path(input) +
                  "}\ntask: {" + task + "}\nmethod: {" + method +
                  ", max_value_tokens: " + std::to_string(tokens) +
                  ", temperature: 1}\nengine: {device: cpu, threads: 4, window: 4}\noutput: "
                  "{path: " +
                  scratch_.path("out") + ", rows_per_file: 20}\n");
  }
  std::string ask_job(const std::string& method, int tokens = 6) const {
    return job("ask.yaml", "questions.jsonl, id: n, context: c, question: q", "kind: ask, instruction: Tell",
               method, tokens);
  }

  /// The files that must not depend on how many engines there were.
  std::map<std::string, std::string> files(const std::string& folder) const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path(folder))) {
      const std::string name = entry.path().filename();
      if (name.starts_with("rows-") || name.starts_with("rejects") || name == "manifest.json")
        found[name] = read_text(entry.path());
    }
    return found;
  }
  Ran run(const std::string& file, const std::string& folder, const std::string& more) const {
    return run_sheaf(scratch_,
                     "run " + file + " --quiet --set output.path=" + scratch_.path(folder) + " " + more);
  }

  TempFolder scratch_;
  std::string model_;
};

TEST_F(Devices, EveryMethodGivesTheBytesOfOneEngine) {
  const std::string extract = "kind: extract, schema: " + scratch_.path("schema.yaml");
  const std::string products = "products.jsonl, id: n, category: kind, document: text";
  const std::string documents = "questions.jsonl, id: n, documents: documents, question: q";
  std::vector<std::string> jobs;
  for (const char* method : {"hpd", "standard", "separate", "prefix", "seqbatch"})
    jobs.push_back(
        job(std::string("extract-") + method + ".yaml", products, extract, std::string("name: ") + method));
  jobs.push_back(job("joint.yaml", products, extract, "name: hpd, stacking: joint, values: positional"));
  for (const char* method : {"ippd", "parallel-prompting", "standard", "separate", "prefix", "seqbatch"})
    jobs.push_back(job(std::string("ask-") + method + ".yaml",
                       "questions.jsonl, id: n, context: c, question: q", "kind: ask, instruction: Tell",
                       std::string("name: ") + method));
  jobs.push_back(job("pced.yaml", documents, "kind: ask, instruction: Tell", "name: pced"));
  jobs.push_back(job("chat.yaml", "chats.jsonl, format: openai-batch", "kind: chat", "name: ippd"));
  for (const std::string& file : jobs) {
    const std::string name = std::filesystem::path(file).stem();
    const Ran one = run(file, name + "-1", ""), three = run(file, name + "-3", "--device cpu:3");
    ASSERT_LE(one.exit_code, 1) << name << one.err;
    ASSERT_EQ(three.exit_code, one.exit_code) << name << three.err;
    EXPECT_EQ(files(name + "-3"), files(name + "-1")) << name;
    EXPECT_GE(files(name + "-1").size(), 5u) << name;
  }
}

TEST_F(Devices, TheReportHasALineForEachEngine) {
  const std::string file = ask_job("name: ippd");
  const Ran ran = run_sheaf(scratch_, "run " + file + " --device cpu:2");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("  engine   CPU, fp32, "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("2 threads #2: "), std::string::npos) << "four threads, divided" << ran.out;
  const json report = json::parse(read_text(scratch_.path("out/report.json")));
  ASSERT_EQ(report["engines"].size(), 2u);
  EXPECT_EQ(report["engines"][0]["answers"].get<int>() + report["engines"][1]["answers"].get<int>(),
            report["answers"]);
  EXPECT_EQ(report["engines"][0]["tokens"].get<int>() + report["engines"][1]["tokens"].get<int>(),
            report["tokens"]["computed"]);
  EXPECT_NE(report["backend"].get<std::string>().find(" and 1 more"), std::string::npos);
  EXPECT_NE(read_text(scratch_.path("out/report.html")).find("By device"), std::string::npos);
  EXPECT_EQ(run_sheaf(scratch_, "report " + scratch_.path("out")).exit_code, 0);
}

TEST_F(Devices, AKilledRunResumesWithAnotherNumberOfEngines) {
  // One record a window and one prompt at a time, so that every engine has work left where they are stopped.
  const std::string file = ask_job("name: ippd", 60), few = " --set engine.window=1 --set engine.prompts=1";
  ASSERT_EQ(run(file, "whole", few).exit_code, 0);
  for (const int signal : {SIGKILL, SIGINT, SIGTERM}) {
    const std::string folder = "stopped" + std::to_string(signal);
    Running job("run " + file + " --quiet --device cpu:3 --set output.path=" + scratch_.path(folder) + few +
                    " 2>" + scratch_.path("err"),
                test::stop_at_group(2));
    ASSERT_TRUE(job.stopped());
    job.send(signal);
    EXPECT_EQ(job.end(), signal == SIGKILL ? 128 + SIGKILL : 130);
    if (signal != SIGKILL) {
      EXPECT_NE(read_text(scratch_.path("err")).find("rerun the same command to resume"), std::string::npos);
    }
    const Ran rest = run(file, folder, "--device cpu:2" + few);
    EXPECT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_EQ(files(folder), files("whole"));
  }
}

TEST_F(Devices, LimitsStopAllEngines) {
  const std::string file = ask_job("name: ippd", 60);
  const Ran stopped = run(file, "out", "--device cpu:3 --max-hours 1e-9");
  EXPECT_EQ(stopped.exit_code, 130);
  EXPECT_NE(stopped.err.find("(--max-hours)"), std::string::npos) << stopped.err;
  EXPECT_EQ(run(file, "out", "--device cpu:3").exit_code, 0);
}

TEST_F(Devices, TooManyEnginesAreRefusedAndVerifyTakesSeveral) {
  const std::string file = ask_job("name: ippd");
  const Ran many = run(file, "out", "--device cpu:5");
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_NE(many.err.find("engine.device: cpu:5 needs a thread for each engine, but the job has 4 "
                          "(engine.threads); use cpu:4"),
            std::string::npos)
      << many.err;
  const Ran verified = run_sheaf(scratch_, "verify " + file + " --device cpu:2 --limit 8");
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_NE(verified.out.find("exact match 1.0000"), std::string::npos) << verified.out;
  EXPECT_EQ(run_sheaf(scratch_, "plan " + file + " --device cpu:2").exit_code, 0);
  scratch_.write("workload.jsonl", "{}\n");
  const Ran bench = run_sheaf(scratch_, "bench " + scratch_.path("workload.jsonl") + " --device cpu:2");
  EXPECT_EQ(bench.exit_code, 2);
  EXPECT_NE(bench.err.find("--device cpu:2: bench times one device; name one, such as cpu"),
            std::string::npos)
      << bench.err;
}

/// Breaks after some steps.
class Breaking : public Backend {
 public:
  Breaking(std::unique_ptr<Backend> inner, int64_t steps) : inner_(std::move(inner)), steps_(steps) {}
  const ModelConfig& config() const override { return inner_->config(); }
  std::string describe() const override { return inner_->describe(); }
  void allocate_kv(int32_t pages, int32_t page_size) override { inner_->allocate_kv(pages, page_size); }
  int64_t kv_bytes_per_token() const override { return inner_->kv_bytes_per_token(); }
  int32_t preferred_tokens() const override { return inner_->preferred_tokens(); }
  void step(const StepBatch& batch, std::span<Picked> picked, std::span<float> logits) override {
    if (steps_-- == 0) fail("CUDA: a step: an illegal memory access was encountered");
    inner_->step(batch, picked, logits);
  }

 private:
  std::unique_ptr<Backend> inner_;
  int64_t steps_;
};

struct Notes : RunListener {
  void note(const std::string& text) override { all += text + "\n"; }
  std::string all;
};

TEST_F(Devices, AFailingEngineIsLeftOutAndTheLastOneEndsTheRun) {
  const std::string file = ask_job("name: ippd, documents: 2", 20);
  ASSERT_EQ(run(file, "whole", "").exit_code, 0);
  std::vector<std::string> overrides{"engine.device=cpu:2", "output.path=" + scratch_.path("lost")};
  RunSettings settings;
  std::set<size_t> broken{0, 1};
  int64_t steps = 30;
  settings.replace = [&](size_t engine, std::unique_ptr<Backend> backend) -> std::unique_ptr<Backend> {
    return std::make_unique<Breaking>(std::move(backend), broken.contains(engine) ? steps : -1);
  };
  Notes notes;
  try {
    run_job(read_job(file, overrides), settings, notes);
    ADD_FAILURE() << "both engines failed";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("illegal memory access"), std::string::npos);
  }
  EXPECT_NE(notes.all.find("failed: CUDA: a step: an illegal memory access was encountered; "
                           "the run continues without it, on 1 device"),
            std::string::npos)
      << notes.all;
  broken = {1};
  steps = 2;
  const RunEnd end = run_job(read_job(file, overrides), settings, notes);
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_NE(notes.all.find("resuming after"), std::string::npos) << notes.all;
  EXPECT_EQ(files("lost"), files("whole"));
  // Of the second session, engine 1 may have got too little to fail; of the first, one of them has.
  EXPECT_TRUE(std::ranges::any_of(end.report["engines"], [](const auto& each) {
    return each.contains("failed");
  })) << end.report["engines"].dump(2);
}

}  // namespace
}  // namespace sheaf

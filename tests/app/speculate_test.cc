// method.speculate through the program: the same rows in fewer steps.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/files/job_file.h"
#include "io/jobs/run_job.h"
#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::run_sheaf;

class SpeculatedRun : public testing::Test {
 protected:
  std::string job(const std::string& model, const std::string& method) const {
    return scratch_.write("job.yaml", "model: {path: " + model + ", chat: chatml}\ninput: {path: " +
                                          SHEAF_SOURCE_DIR
                                          "/datasets/catalog/catalog.parquet, id: sku, "
                                          "category: category, document: [title, description], limit: 2}\n"
                                          "task: {kind: extract, schema: " SHEAF_SOURCE_DIR
                                          "/configs/schemas/catalog.yaml}\nmethod: {" +
                                          method + "}\nengine: {device: cpu, prompts: 1}\noutput: {path: " +
                                          scratch_.path("out") + ", logprobs: true}\n");
  }
  Ran run(const std::string& job, const std::string& name, const std::string& more = "") const {
    return run_sheaf(scratch_, "run " + job + " --set output.path=" + scratch_.path(name) + " " + more);
  }
  std::string rows(const std::string& name) const {
    return read_text(scratch_.path(name) + "/rows-00000.jsonl");
  }
  json report(const std::string& name) const {
    return json::parse(read_text(scratch_.path(name) + "/report.json"));
  }

  TempFolder scratch_;
};

TEST_F(SpeculatedRun, AWholeObjectHasTheSameRowsInFewerSteps) {
  NEED_MODEL();
  const std::string standard =
      job(SHEAF_SOURCE_DIR "/build/models/smollm2.gguf", "name: standard, max_value_tokens: 12");
  ASSERT_EQ(run(standard, "plain").exit_code, 0);
  Job guessing = read_job(standard, {"method.speculate=lookup", "output.path=" + scratch_.path("guessed")});
  guessing.method.speculate.always = true;  // else a busy machine decides how much is proposed
  RunListener nobody;
  ASSERT_EQ(run_job(guessing, {}, nobody).exit_code, 0);
  EXPECT_EQ(rows("guessed"), rows("plain"));
  const json without = report("plain"), with = report("guessed");
  EXPECT_FALSE(without["tokens"].contains("proposed"));
  EXPECT_GT(with["tokens"]["accepted"], 20);
  EXPECT_GE(with["tokens"]["proposed"], with["tokens"]["accepted"]);
  EXPECT_LT(with["steps"], without["steps"].get<int64_t>() * 3 / 4);
  const Ran shown = run_sheaf(scratch_, "report " + scratch_.path("guessed"));
  EXPECT_NE(shown.out.find("  guessed  "), std::string::npos) << shown.out << shown.err;
}

TEST_F(SpeculatedRun, RowsOfEveryMethodStayTheSame) {
  const std::string model = test::make_tiny_model(scratch_);
  for (const char* method : {"name: hpd, max_value_tokens: 20", "name: prefix",
                             "name: separate, temperature: 0.7", "name: seqbatch"}) {
    const std::string asked = job(model, method);
    ASSERT_EQ(run(asked, "plain", "--restart -q").exit_code, 0) << method;
    ASSERT_EQ(run(asked, "guessed", "--restart -q --set method.speculate=lookup").exit_code, 0) << method;
    EXPECT_FALSE(rows("plain").empty());
    EXPECT_EQ(rows("guessed"), rows("plain")) << method;
  }
}

TEST_F(SpeculatedRun, ADraftChangesNoRow) {
  const std::string tiny = test::make_tiny_model(scratch_);
  const std::string draft = " --set \"method.speculate={draft: " + tiny + ", always: true}\"";
  for (const char* method : {"name: standard", "name: hpd, max_value_tokens: 20", "name: prefix",
                             "name: hpd, max_value_tokens: 20, temperature: 0.5"})
    for (const char* device : {"cpu", "cpu:2"}) {
      const std::string asked = job(tiny, method), more = "--restart -q --device " + std::string(device);
      ASSERT_EQ(run(asked, "plain", more).exit_code, 0);
      const Ran guessed = run(asked, "guessed", more + draft);
      ASSERT_EQ(guessed.exit_code, 0) << guessed.err;
      EXPECT_FALSE(rows("plain").empty());
      EXPECT_EQ(rows("guessed"), rows("plain")) << method;
      const json tokens = report("guessed")["tokens"];
      EXPECT_GT(tokens["proposed"], 20) << method;
      EXPECT_GT(tokens["accepted"], 0) << method;
      EXPECT_GT(tokens["draft"], tokens["proposed"]) << method;
    }
  const Ran verified = run_sheaf(scratch_, "verify " + job(tiny, "name: hpd") + " --json" + draft);
  ASSERT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_EQ(json::parse(verified.out)["exact_match"], 1.0);
}

TEST_F(SpeculatedRun, ADraftTakesNoRoomFromPrompts) {
  const std::string tiny = test::make_tiny_model(scratch_), asked = job(tiny, "name: standard");
  const std::string few = "-q --restart --set engine.kv_memory_gb=";
  // The least memory that holds the prompts, to a tenth.
  double room = 1e-6;
  while (run(asked, "plain", few + fmt::format("{:.9f}", room)).exit_code != 0) room *= 1.1;
  const Ran drafted =
      run(asked, "guessed", few + fmt::format("{:.9f}", room) + " --set method.speculate.draft=" + tiny);
  EXPECT_EQ(drafted.exit_code, 0) << drafted.err;
  EXPECT_EQ(rows("guessed"), rows("plain"));
  EXPECT_TRUE(report("guessed")["tokens"].contains("draft"));
}

TEST_F(SpeculatedRun, ADraftWithOtherTokensIsRefused) {
  NEED_MODEL();
  const std::string tiny = test::make_tiny_model(scratch_);
  const Ran ran = run(job(SHEAF_SOURCE_DIR "/build/models/smollm2.gguf", "name: hpd"), "out",
                      "--set method.speculate.draft=" + tiny);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("method.speculate.draft: " + tiny + " has another tokenizer than"),
            std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("use a smaller model of the same family"), std::string::npos) << ran.err;
  const Ran none = run(job(tiny, "name: hpd"), "out", "--set method.speculate.draft=README.md");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("method.speculate.draft: README.md"), std::string::npos) << none.err;
  const Ran slow = run(job(tiny, "name: hpd"), "out",
                       "--set engine.kernels=reference --set method.speculate.draft=" + tiny);
  EXPECT_EQ(slow.exit_code, 2);
  EXPECT_NE(slow.err.find("does not work with engine.kernels: reference"), std::string::npos) << slow.err;
}

TEST_F(SpeculatedRun, VerifyComparesWithDecodingWithoutIt) {
  const std::string asked = job(test::make_tiny_model(scratch_), "name: hpd, speculate: lookup");
  const Ran verified = run_sheaf(scratch_, "verify " + asked + " --json");
  ASSERT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_EQ(json::parse(verified.out)["exact_match"], 1.0);
}

TEST_F(SpeculatedRun, PlansAndEstimatesDoNotCountIt) {
  const std::string model = test::make_tiny_model(scratch_);
  const Ran plain = run_sheaf(scratch_, "plan " + job(model, "name: standard"));
  const Ran guessed = run_sheaf(scratch_, "plan " + job(model, "name: standard, speculate: lookup"));
  EXPECT_EQ(guessed.exit_code, 0) << guessed.err;
  EXPECT_EQ(guessed.out, plain.out);
}

}  // namespace
}  // namespace sheaf

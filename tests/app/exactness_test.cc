// Packed prompts against one prompt per question, on the default model and real rows.
#include <algorithm>
#include <gtest/gtest.h>

#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::run_sheaf;

json verify(const TempFolder& scratch, const std::string& arguments) {
  const auto ran = run_sheaf(scratch, "verify " + arguments + " --json --device cpu");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  return json::parse(ran.out);
}

/// The shortest contexts of SQuAD's first article with at most three questions each, as a corpus.
std::string squad_sample(const TempFolder& scratch, size_t contexts) {
  const json squad = json::parse(read_text("../shared/datasets/squad2/dev-v2.0.json"));
  auto paragraphs = squad["data"][0]["paragraphs"].get<std::vector<json>>();
  std::sort(paragraphs.begin(), paragraphs.end(), [](const json& a, const json& b) {
    return a["context"].get<std::string>().size() < b["context"].get<std::string>().size();
  });
  paragraphs.resize(contexts);
  std::string lines;
  for (const json& paragraph : paragraphs) {
    json row{{"context", paragraph["context"]}, {"questions", json::array()}};
    for (const json& qa : paragraph["qas"])
      if (row["questions"].size() < 3)
        row["questions"].push_back({{"id", qa["id"]}, {"question", qa["question"]}});
    lines += row.dump() + "\n";
  }
  return scratch.write("squad.jsonl", lines);
}

std::string ask_job(const TempFolder& scratch, const std::string& corpus, const std::string& method) {
  return scratch.write(
      "ask.yaml", "model: {path: " SHEAF_SOURCE_DIR "/build/models/smollm2.gguf}\ninput: {path: " + corpus +
                      ", context: context, questions: questions}\ntask: {kind: ask}\nmethod: {" + method +
                      ", max_value_tokens: 8}\noutput: {path: " + scratch.path("out") + "}\n");
}

TEST(ExactOnSquad, IppdAndPrefixEqualOnePromptPerQuestion) {
  NEED_MODEL();
  NEED_SHARED("../shared/datasets/squad2/dev-v2.0.json");
  const TempFolder scratch;
  const std::string corpus = squad_sample(scratch, 2);
  for (const char* method :
       {"name: ippd, documents: 2", "name: prefix", "name: ippd, questions: 2", "name: parallel-prompting"}) {
    const json result = verify(scratch, ask_job(scratch, corpus, method));
    EXPECT_EQ(result["records"], 2) << method;
    EXPECT_EQ(result["answers"], 6) << method;
    EXPECT_EQ(result["exact_match"], 1.0) << method << result["differences"].dump(2);
  }
}

TEST(ExactOnOaMine, IndependentIsolatedValuesEqualSeparatePrompts) {
  NEED_MODEL();
  NEED_SHARED("../shared/datasets/oa-mine/test.jsonl");
  const TempFolder scratch;
  const std::string job = scratch.write(
      "job.yaml", "model: {path: " SHEAF_SOURCE_DIR
                  "/build/models/smollm2.gguf}\n"
                  "input: {path: " SHEAF_SOURCE_DIR
                  "/../shared/datasets/oa-mine/test.jsonl, category: category, document: input}\n"
                  "task: {kind: extract, schema: " SHEAF_SOURCE_DIR
                  "/configs/schemas/oa-mine.yaml}\n"
                  "method: {name: hpd, documents: 3, max_value_tokens: 10}\noutput: {path: " +
                      scratch.path("out") + "}\n");
  const json result = verify(scratch, job + " --limit 2");
  EXPECT_EQ(result["records"], 2);
  EXPECT_GT(result["answers"].get<int>(), 15);
  EXPECT_EQ(result["exact_match"], 1.0) << result["differences"].dump(2);
}

TEST(ExactOnCatalog, OptionsAndSampledValuesEqualSeparatePrompts) {
  NEED_MODEL();
  const TempFolder scratch;
  for (const char* choice : {"method.options=likeliest", "method.temperature=0.8 --set method.seed=7"}) {
    const json result = verify(scratch, std::string("configs/demo.yaml --limit 1 --set ") + choice +
                                            " --set method.max_value_tokens=8");
    EXPECT_EQ(result["records"], 1);
    EXPECT_GT(result["answers"].get<int>(), 7);
    EXPECT_EQ(result["exact_match"], 1.0) << choice << result["differences"].dump(2);
  }
}

TEST(ExactOnPassages, PackedQuestionsEqualOnePromptPerQuestion) {
  NEED_MODEL();
  const TempFolder scratch;
  const json result = verify(scratch, "configs/ask.yaml --limit 2 --set method.max_value_tokens=6");
  EXPECT_EQ(result["records"], 2);
  EXPECT_GT(result["answers"].get<int>(), 7);
  EXPECT_EQ(result["exact_match"], 1.0) << result["differences"].dump(2);
}

TEST(ExactOnPassages, PackedQuestionsEqualSeparateOnesInInt16AndInt8) {
  NEED_MODEL();
  const TempFolder scratch;
  for (const char* dtype : {"int16", "int8"}) {
    const json result = verify(scratch,
                               "configs/ask.yaml --limit 2 --set method.max_value_tokens=6 "
                               "--set model.dtype=" +
                                   std::string(dtype));
    EXPECT_GT(result["answers"].get<int>(), 7);
    EXPECT_EQ(result["exact_match"], 1.0) << dtype << result["differences"].dump(2);
  }
  const auto ran =
      run_sheaf(scratch, "verify configs/ask.yaml --set model.dtype=int8 --set engine.kernels=reference");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("engine.kernels: reference computes in fp32, not in int8"), std::string::npos)
      << ran.err;
}

TEST(Precision, Fp8Bf16AndPackedWeightsAreRefusedOnTheCpu) {
  NEED_MODEL();
  const TempFolder scratch;
  const std::pair<const char*, const char*> cases[] = {
      {"--set model.dtype=fp8 --device cpu",
       "model.dtype: fp8 works only on a GPU, but engine.device is cpu"},
      {"--set model.dtype=bf16 --device cpu", "model.dtype: bf16 works only on a GPU"},
      {"--set model.cpu_dtype=fp8", "a CPU does not compute in fp8; use f32, int16 or int8"},
      {"--set model.weights=packed --device cpu", "model.weights: packed works only on a GPU; leave it out"},
  };
  for (const auto& [options, message] : cases) {
    const auto ran = run_sheaf(scratch, std::string("verify configs/ask.yaml --limit 1 ") + options);
    EXPECT_EQ(ran.exit_code, 2) << options;
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
  }
}

TEST(Verify, WithNothingToCompareItFails) {
  NEED_MODEL();
  const TempFolder scratch;
  const auto ran = run_sheaf(scratch, "verify configs/demo.yaml --limit 1 --set engine.kv_memory_gb=0.00001");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("nothing to compare"), std::string::npos) << ran.err;
}

TEST(InexactByDesign, PositionalValuesDifferAndTheDifferencesAreShown) {
  NEED_MODEL();
  const TempFolder scratch;
  const json result = verify(scratch, "configs/extract-paper.yaml --limit 2 --set method.max_value_tokens=8");
  EXPECT_LT(result["exact_match"].get<double>(), 1.0);
  ASSERT_FALSE(result["differences"].empty());
  EXPECT_NE(result["differences"][0]["method"], result["differences"][0]["separate"]);
}

}  // namespace
}  // namespace sheaf

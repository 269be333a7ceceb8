#include "tests/app/program.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sheaf {
namespace {

using nlohmann::json;
using test::run_sheaf;

TEST(EstimateCommand, NeedsNeitherModelNorGpu) {
  const TempFolder scratch;
  const std::string corpus =
      scratch.write("c.jsonl", R"({"text":"A red cup of tea.","q":["Which colour?","What for?"]})"
                               "\n"
                               R"({"text":"A blue plate for bread.","q":["Which colour?"]})"
                               "\n");
  const std::string job = scratch.write("job.yaml", "model: {path: qwen3-8b}\ninput: {path: " + corpus +
                                                        ", context: text, questions: q}\ntask: {kind: ask}\n"
                                                        "method: {name: ippd}\noutput: {path: out/none}\n");
  const auto ran = run_sheaf(scratch, "estimate " + job + " --hardware h200 --rows 1000 --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json result = json::parse(ran.out);
  EXPECT_TRUE(result["model"] == "qwen3-8b");
  EXPECT_EQ(result["rows"], 1000);
  EXPECT_EQ(result["answers"], 1500);
  EXPECT_GT(result["seconds"]["work"].get<double>(), 0);
  EXPECT_NE(result["notes"].dump().find("guessed from bytes"), std::string::npos);
}

TEST(EstimateCommand, AFewRowsStandForMany) {
  const TempFolder scratch;
  std::string rows, text;
  for (int word = 0; word < 200; ++word) text += "word" + std::to_string(word) + " ";
  for (int i = 0; i < 512; ++i)
    rows += R"({"text":"Story )" + std::to_string(i) + ". " + text +
            R"(","q":["Which?","What for?"]})"
            "\n";
  const std::string corpus = scratch.write("c.jsonl", rows);
  const std::string job = scratch.write("job.yaml", "model: {path: qwen3-8b}\ninput: {path: " + corpus +
                                                        ", context: text, questions: q}\ntask: {kind: ask}\n"
                                                        "method: {name: ippd}\noutput: {path: out/none}\n");
  const auto estimated = [&](const char* sample) {
    const auto ran =
        run_sheaf(scratch, "estimate " + job + " --hardware h200 --rows 100000 --json --sample " + sample);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return json::parse(ran.out, nullptr, false);
  };
  const json many = estimated("512");
  for (const char* sample : {"1", "2", "7", "16"}) {
    const json few = estimated(sample);
    for (const char* key : {"rows_per_second", "steps_per_device", "tokens_computed"})
      EXPECT_NEAR(few[key].get<double>() / many[key].get<double>(), 1, 0.05) << key << " of " << sample;
    EXPECT_LE(few["tokens_computed"].get<double>(),
              few["steps_per_device"].get<double>() * few["tokens_per_step"].get<double>());
    EXPECT_NEAR(few["best"]["work_seconds"].get<double>() / many["best"]["work_seconds"].get<double>(), 1,
                0.1);
    EXPECT_EQ(few["notes"].dump().find("too small to say much") != std::string::npos, few["error"] > 0.2)
        << sample;
  }
  EXPECT_GE(estimated("1")["error"].get<double>(), 1);
}

TEST(EstimateCommand, SweepsWriteATableAndAPage) {
  const TempFolder scratch;
  const std::string page = scratch.path("page.html");
  const auto ran = run_sheaf(scratch,
                             "estimate --model qwen3-8b --document-tokens 100 --rows 50 --sweep "
                             "hardware=l4,h200 --sweep model=qwen3-8b,qwen3-32b --within 1h --html " +
                                 page);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("cheapest in time"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("sheaf runs a model on one device"), std::string::npos);  // 32B on an L4
  const std::string html = read_text(page);
  EXPECT_NE(html.find("<table>"), std::string::npos);
  EXPECT_NE(html.find("cheapest in time"), std::string::npos);
  EXPECT_NE(html.find("<title>rows per second</title>"), std::string::npos);
  EXPECT_NE(ran.out.find("####################"), std::string::npos) << ran.out;
}

TEST(EstimateCommand, WrongOptionsAreRefusedWithAReason) {
  const TempFolder scratch;
  const auto says = [&](const std::string& arguments, const std::string& text) {
    const auto ran = run_sheaf(scratch, "estimate " + arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_NE(ran.err.find(text), std::string::npos) << ran.err;
  };
  says("", "give a job");
  says("configs/drop.yaml --model qwen3-8b --set input.path=no.json", "--document-tokens");
  says("configs/squad.yaml --set model.path=no.gguf --document-tokens 10",
       "no file, folder or shape has this name; use one of ");
  says("--model smollm2-135m --document-tokens 100000 --hardware h200", "input.too_long");
  says("--model qwen3-8b --questions 3", "--document-tokens");
  says("configs/demo.yaml --document-tokens 100 --questions 3", "configs/schemas/catalog.yaml");
  says("--model qwen3-8b", "--document-tokens");
  says("--model qwen3-9b --document-tokens 10", "did you mean \"qwen3-4b\"?");
  says("--model qwen3-8b --document-tokens 10 --hardware h300", "h200");
  says("--model qwen3-32b --document-tokens 10 --hardware l4", "h100");
  says("--model qwen3-8b --document-tokens 10 --sweep colour=red", "--sweep");
  says("--model qwen3-8b --document-tokens 1e7 --questions 1e4 --answer-tokens 1e5", "too many to make up");
}

TEST(EstimateCommand, EmptySweepsAndLateFaultsAreRefusedFirst) {
  const TempFolder scratch;
  const auto says = [&](const std::string& arguments, const std::string& text) {
    const auto ran = run_sheaf(scratch, "estimate " + arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments << ran.out;
    EXPECT_TRUE(ran.out.empty()) << ran.out;
    EXPECT_NE(ran.err.find(text), std::string::npos) << ran.err;
  };
  says("--model smollm2-135m --document-tokens 100000 --hardware h200,h100", "input.too_long");
  says("--model smollm2-135m --document-tokens 100000 --documents-per-record 2 --method pced --hardware h200",
       "a longer context or shorter documents");
  says("--model qwen3-8b --document-tokens 10 --hardware h200 --html " + scratch.path("no/such/page.html"),
       "does not exist; create it first");
  says("--model qwen3-8b --document-tokens 10 --within 3", "--within");
  const std::string job = "configs/squad.yaml --model qwen3-8b --document-tokens 10 --set ";
  says(job + "estimate.hardware=h9", "estimate.hardware: h9 is not in");
  says(job + "estimate.sweep.hardware=h9", "estimate.sweep.hardware: h9 is not in");
  const auto many = run_sheaf(
      scratch, "estimate --model qwen3-8b --document-tokens 10 --hardware h200 --rows 1000000000000");
  EXPECT_NE(many.out.find("rows      1,000,000,000,000\n"), std::string::npos) << many.out;
}

TEST(EstimateCommand, WrongLengthsAreRefused) {
  const TempFolder scratch;
  for (const char* option :
       {"--document-tokens", "--answer-tokens", "--questions", "--question-tokens", "--instruction-tokens"})
    for (const char* value : {"nan", "inf", "1e300", "-1", "many"}) {
      const auto ran =
          run_sheaf(scratch, std::string("estimate configs/squad.yaml --model qwen3-8b --hardware h200 ") +
                                 option + " " + value);
      EXPECT_NE(ran.exit_code, 0) << option << " " << value;
      EXPECT_NE(ran.err.find("must be a number from"), std::string::npos) << ran.err;
    }
  const auto ran = run_sheaf(scratch, "estimate --model qwen3-8b --document-tokens 10 --questions 0.3");
  EXPECT_NE(ran.err.find("must be a number from 1 to 10000000; got 0.3"), std::string::npos) << ran.err;
}

TEST(EstimateProgram, ACpuIsEstimatedInTheDtypeOfTheJob) {
  const TempFolder scratch;
  const auto seconds = [&](const std::string& dtype) {
    const auto ran = run_sheaf(
        scratch,
        "estimate configs/demo.yaml --hardware cpu --model smollm2-135m --json --set model.dtype=" + dtype);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return nlohmann::json::parse(ran.out).at("seconds").at("total").get<double>();
  };
  const double f32 = seconds("f32"), int16 = seconds("int16"), int8 = seconds("int8");
  EXPECT_LT(int16, 0.8 * f32);
  EXPECT_LT(int8, 0.8 * int16);
}

TEST(BenchProfile, RefusesBeforeItMeasures) {
  const TempFolder scratch;
  const std::string file = scratch.path("device.json");
  const auto nothing = run_sheaf(scratch, "bench");
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_NE(nothing.err.find("--profile"), std::string::npos) << nothing.err;
  const auto unknown = run_sheaf(scratch, "bench --device cpu --shapes qwen3-9b --calibrate " + file);
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("unknown shape \"qwen3-9b\"; did you mean \"qwen3-"), std::string::npos)
      << unknown.err;
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace sheaf

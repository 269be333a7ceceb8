#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::run_sheaf;

json estimate_of(const TempFolder& scratch, const std::string& arguments) {
  const auto ran = run_sheaf(scratch, "estimate " + arguments + " --json");
  EXPECT_EQ(ran.exit_code, 0) << arguments << ": " << ran.err;
  return json::parse(ran.out, nullptr, false);
}

std::string job_text(const std::string& corpus, const std::string& more) {
  return "model: {path: qwen3-8b}\ninput: {path: " + corpus +
         ", context: text, questions: q}\ntask: {kind: ask}\nmethod: {name: ippd, max_value_tokens: 5}\n"
         "output: {path: out/none}\n" +
         more;
}

TEST(EstimateCommand, ADtypeOfTheCpuIsNotEstimatedOnAGpu) {
  const TempFolder scratch;
  const std::string job = "configs/squad.yaml --model qwen3-8b --document-tokens 300 --set input.path=none ";
  const std::string refusal =
      "model.dtype: int8 works only on the CPU; leave it out, or set engine.device: cpu";
  for (const char* more : {"--hardware h100", "--sweep hardware=h100,l40s", "--set engine.device=cuda"}) {
    const auto ran = run_sheaf(scratch, "estimate " + job + "--set model.dtype=int8 " + more);
    EXPECT_EQ(ran.exit_code, 2) << more;
    EXPECT_NE(ran.err.find(refusal), std::string::npos) << ran.err;
  }
  const auto compared = [&](const std::string& more) { return estimate_of(scratch, job + more).dump(); };
  EXPECT_EQ(compared("--set model.dtype=int8").find("h100"), std::string::npos);
  EXPECT_EQ(compared("--set model.dtype=bf16"), compared(""));
  EXPECT_NE(compared("--set model.cpu_dtype=int8").find("h100"), std::string::npos);
  EXPECT_EQ(compared("--set model.dtype=int8"), compared("--set model.dtype=int8 --set engine.device=cpu"));
}

TEST(EstimateCommand, Fp8IsFasterAndRefusedOnOlderGpus) {
  const TempFolder scratch;
  const std::string job = "configs/squad.yaml --model qwen3-8b --document-tokens 300 --set input.path=none ";
  const auto seconds = [&](const std::string& more) {
    const json result = estimate_of(scratch, job + "--hardware h200 " + more);
    return std::pair(result["seconds"]["work"].get<double>(), result["memory_gb"]["weights"].get<double>());
  };
  const auto wide = seconds(""), narrow = seconds("--dtype fp8"), set = seconds("--set model.dtype=fp8");
  EXPECT_GT(wide.first / narrow.first, 1.4);
  EXPECT_LT(wide.first / narrow.first, 2);
  EXPECT_NEAR(narrow.second, 9.4, 0.2);  // 6.9 GB of layers, embedding and output in bf16
  EXPECT_EQ(narrow, set);
  // Of all GPUs only those are compared that can do it; others are refused by name.
  const std::string all = estimate_of(scratch, job + "--dtype fp8").dump();
  EXPECT_NE(all.find("h100"), std::string::npos);
  EXPECT_EQ(all.find("a100"), std::string::npos);
  const auto ran = run_sheaf(scratch, "estimate " + job + "--dtype fp8 --hardware a100-80");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("sheaf does not compute in FP8 on a100-80"), std::string::npos) << ran.err;
}

TEST(EstimateCommand, PackedWeightsTakeLessMemoryAndALittleTime) {
  const TempFolder scratch;
  const std::string lengths = "--document-tokens 300 --questions 4 --rows 20000 ";
  const json wide = estimate_of(scratch, "--model qwen3-8b --hardware h200 " + lengths),
             packed = estimate_of(scratch, "--model qwen3-8b --hardware h200 --packed " + lengths);
  EXPECT_FALSE(wide["weights_packed"]);
  EXPECT_TRUE(packed["weights_packed"]);
  EXPECT_LT(packed["memory_gb"]["weights"].get<double>(), 6);
  const double slower = packed["seconds"]["work"].get<double>() / wide["seconds"]["work"].get<double>();
  EXPECT_GT(slower, 1.005);
  EXPECT_LT(slower, 1.05);
  // A 70B fits a card of 48 GB so; the refusal says it.
  const auto refused = run_sheaf(scratch, "estimate --model llama-3.1-70b --hardware l40s " + lengths);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("it fits with --packed, from a file with 4-bit weights (42.1 GB)"),
            std::string::npos)
      << refused.err;
  const auto either = run_sheaf(scratch, "estimate --model qwen3-32b --hardware l40s " + lengths);
  EXPECT_NE(either.err.find("it fits with --dtype fp8 (34.3 GB) or with --packed, from a file with 4-bit "
                            "weights ("),
            std::string::npos)
      << either.err;
  EXPECT_TRUE(
      estimate_of(scratch, "--model llama-3.1-70b --hardware l40s --packed " + lengths)["weights_packed"]);
}

TEST(EstimateCommand, ExplainsFlopsAndBytesByPhase) {
  const TempFolder scratch;
  const std::string job =
      "configs/squad.yaml --model qwen3-8b --document-tokens 300 --questions 8 --set input.path=none ";
  const json phases = estimate_of(scratch, job + "--hardware h200 --explain")["phases"];
  double tokens = 0;
  for (const char* phase : {"shared", "own", "decode"}) {
    tokens += phases[phase]["tokens"].get<double>();
    EXPECT_GT(phases[phase]["attention"]["flops"].get<double>(), 0) << phase;
    EXPECT_GT(phases[phase]["products"]["bytes"].get<double>(), 0) << phase;
  }
  EXPECT_NEAR(phases["all"]["tokens"].get<double>(), tokens, tokens * 1e-9);
  EXPECT_NEAR(phases["device_flops_per_byte"].get<double>(), 206, 1);
  EXPECT_FALSE(estimate_of(scratch, job + "--hardware h200").contains("phases"));
  const auto several = run_sheaf(scratch, "estimate " + job + "--explain");
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_NE(several.err.find("--explain works only with one device"), std::string::npos) << several.err;
}

TEST(EstimateCommand, SetNeedsAJob) {
  const TempFolder scratch;
  const auto ran =
      run_sheaf(scratch, "estimate --model qwen3-8b --document-tokens 300 --set model.dtype=fp8");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("overrides a key of a job file"), std::string::npos) << ran.err;
}

// Every job of a public dataset, none of whose data need be there.
TEST(EstimateCommand, LengthsStandInForDataThatIsNotThere) {
  const TempFolder scratch;
  for (const char* name : {"squad", "race", "narrativeqa", "longhealth", "quac", "drop", "hotpotqa",
                           "musique", "oa-mine", "ae-110k", "needle"}) {
    const json result =
        estimate_of(scratch, std::string("configs/") + name +
                                 ".yaml --model qwen3-8b --document-tokens 300 --hardware h200 "
                                 "--set input.path=no/such/place --rows 2000");
    EXPECT_EQ(result["rows"], 2000) << name;
    EXPECT_GT(result["tokens_computed"].get<int64_t>(), 2000 * 300 * 0.9) << name;
  }
  // The instruction is the job's: five examples make it long, and are missed.
  const json without =
      estimate_of(scratch,
                  "configs/narrativeqa.yaml --model qwen3-8b --document-tokens 700 --hardware h200 "
                  "--set input.path=no/such/place");
  EXPECT_NE(without["notes"].dump().find("input.shots"), std::string::npos);
  const json with =
      estimate_of(scratch,
                  "configs/narrativeqa.yaml --model qwen3-8b --document-tokens 700 --hardware h200 "
                  "--set input.path=no/such/place --instruction-tokens 2754");
  EXPECT_EQ(with["notes"].dump().find("input.shots"), std::string::npos);
  EXPECT_GT(with["tokens_one_prompt_per_question"], without["tokens_one_prompt_per_question"]);
}

TEST(EstimateCommand, ATooLongRowIsNamedAndLeftOut) {
  const TempFolder scratch;
  const std::string line = R"({"text":"A red cup of tea.","q":["Which colour?"]})";
  const std::string corpus =
      scratch.write("c.jsonl", line + "\n" + R"({"text":")" + std::string(400000, 'x') +
                                   R"(","q":["What?"]})" + "\nno row\n" + line + "\n");
  const std::string job = scratch.write("job.yaml", job_text(corpus, ""));
  const json result = estimate_of(scratch, job + " --hardware h200");
  EXPECT_EQ(result["rows"], 2);
  EXPECT_EQ(result["records_too_long"], 1);
  EXPECT_EQ(result["records_too_long_for_memory"], 0);
  EXPECT_EQ(result["records_rejected"], 1);
  EXPECT_EQ(result["answers"], 2);
  const auto text = run_sheaf(scratch, "estimate " + job + " --hardware h200");
  EXPECT_NE(text.out.find("too long  1 row more: a prompt would need more than 40,960 positions"),
            std::string::npos)
      << text.out;
  const json cut = estimate_of(scratch, job + " --hardware h200 --set input.too_long=truncate");
  EXPECT_EQ(cut["rows"], 3);
  EXPECT_EQ(cut["records_too_long"], 0);
  const json both = estimate_of(scratch, job);
  EXPECT_EQ(both["cases"][0]["records_too_long"], 1);
}

TEST(EstimateCommand, AnswersAreAsLongAsTheirOptionsAndLimitsSay) {
  const TempFolder scratch;
  const std::string corpus = scratch.write(
      "c.jsonl",
      R"({"text":"A red cup.","q":[{"question":"Colour?","options":["red","blue"]}]})"
      "\n"
      R"({"text":"A red cup.","q":[{"question":"Colour?","options":["red","blue"]},"What is it?"]})"
      "\n");
  const std::string job = scratch.write("job.yaml", job_text(corpus, ""));
  // Two letters of a token each, and one answer that method.max_value_tokens ends after five.
  EXPECT_NEAR(estimate_of(scratch, job + " --hardware h200")["tokens_an_answer"].get<double>(), 7.0 / 3,
              1e-9);
  EXPECT_NEAR(
      estimate_of(scratch, job + " --hardware h200 --answer-tokens 2")["tokens_an_answer"].get<double>(),
      4.0 / 3, 1e-9);
}

TEST(EstimateCommand, FreeAnswersAreMentionedOnlyWhereThereAreSome) {
  const TempFolder scratch;
  const std::string corpus = scratch.write(
      "c.jsonl", R"({"text":"A red cup.","q":[{"question":"Colour?","options":["red","blue"]}]})"
                 "\n");
  const json result =
      estimate_of(scratch, scratch.write("job.yaml", job_text(corpus, "")) + " --hardware h200");
  EXPECT_EQ(result["notes"].dump().find("free answers"), std::string::npos) << result["notes"].dump();
}

TEST(EstimateCommand, PricesComeFromTheListAndFromTheJob) {
  const TempFolder scratch;
  const std::string corpus = scratch.write("c.jsonl", R"({"text":"A red cup.","q":["Which colour?"]})"
                                                      "\n");
  const std::string job =
      scratch.write("job.yaml", job_text(corpus, "cost: {usd_per_hour: 2, devices: 4}\n"));
  const json result = estimate_of(scratch, job + " --hardware h200 --rows 100000");
  EXPECT_EQ(result["devices"], 4);
  EXPECT_EQ(result["usd_at_job_price"]["per_hour"], 8);
  EXPECT_NEAR(result["usd_at_job_price"]["total"].get<double>(),
              8 * result["seconds"]["total"].get<double>() / 3600, 1e-9);
  EXPECT_TRUE(result["price"]["instance"] == "AWS p5en.48xlarge");
  EXPECT_EQ(result["price"]["share_of_instance"], true);
  EXPECT_NEAR(result["usd"]["per_hour"].get<double>(),
              result["price"]["instance_usd_per_hour"].get<double>() / 2, 1e-9);
  const auto four = run_sheaf(scratch, "estimate " + job + " --hardware h200 --rows 100000");
  EXPECT_NE(four.out.find("steps on each device"), std::string::npos) << four.out;
  EXPECT_EQ(estimate_of(scratch, job + " --hardware h200 --devices 8")["price"]["share_of_instance"], false);
  const auto text = run_sheaf(scratch, "estimate " + job + " --hardware h200 --devices 1");
  EXPECT_NE(text.out.find("1 of the 8 devices of AWS p5en.48xlarge"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("--devices 8"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("at the job's own price, $2.00 an hour"), std::string::npos) << text.out;
  const auto table = run_sheaf(scratch, "estimate " + job + " --devices 1");
  EXPECT_NE(table.out.find("h200 $63.30 for AWS p5en.48xlarge, only all 8 devices together"),
            std::string::npos)
      << table.out;
}

TEST(EstimateCommand, TheJobsPriceAppliesToTheDeviceItNames) {
  const TempFolder scratch;
  const std::string corpus = scratch.write("c.jsonl", R"({"text":"A red cup.","q":["Which colour?"]})"
                                                      "\n");
  const std::string job = scratch.write("job.yaml", job_text(corpus, "cost: {usd_per_hour: 2}\n"));
  const auto unnamed = run_sheaf(scratch, "estimate " + job);
  EXPECT_EQ(unnamed.out.find("$ at the job's price"), std::string::npos) << unnamed.out;
  EXPECT_NE(unnamed.out.find("the job's own price, $2.00 an hour, is left out; set cost.hardware"),
            std::string::npos)
      << unnamed.out;
  const json named = estimate_of(scratch, job + " --set cost.hardware=h100");
  for (const json& each : named["cases"])
    EXPECT_EQ(each.contains("usd_at_job_price"), each["hardware"] == "h100") << each;
  const auto wrong = run_sheaf(scratch, "estimate " + job + " --set cost.hardware=h300");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("cost.hardware: h300 is not in"), std::string::npos) << wrong.err;
}

TEST(EstimateCommand, OldPricesAreWarnedOf) {
  const TempFolder scratch;
  std::string list = read_text("configs/hardware.yaml");
  const size_t at = list.find("2025-07");
  std::filesystem::copy("configs/devices", scratch.path("devices"));
  const auto estimate_at = [&](const std::string& month) {
    const std::string file = scratch.write("list.yaml", std::string(list).replace(at, 7, month));
    return run_sheaf(scratch,
                     "estimate --model qwen3-8b --document-tokens 100 --records 100 --hardware h200 "
                     "--hardware-file " +
                         file + " --html " + scratch.path("page.html"));
  };
  const auto old = estimate_at("2021-03");
  EXPECT_EQ(old.exit_code, 0) << old.err;
  EXPECT_NE(old.err.find("WARNING: the list prices are "), std::string::npos) << old.err;
  EXPECT_NE(old.err.find(" months old; give your own with --set cost.usd_per_hour=PRICE\n"),
            std::string::npos)
      << old.err;
  EXPECT_EQ(old.out.find("months old"), std::string::npos) << "said once";
  EXPECT_NE(read_text(scratch.path("page.html")).find("Warning: the list prices are"), std::string::npos);
  const auto fresh = estimate_at("2099-01");
  EXPECT_EQ(fresh.err, "");
  EXPECT_EQ(read_text(scratch.path("page.html")).find("Warning"), std::string::npos);
}

TEST(EstimateCommand, WritesAPageForReaders) {
  const TempFolder scratch;
  const auto ran =
      run_sheaf(scratch,
                "estimate --model qwen3-8b --document-tokens 300 --records 100000000 --hardware h200 "
                "--sweep method=ippd,standard --html " +
                    scratch.path("page.html"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("model   qwen3-8b\nrows    100,000,000\nprices  list prices of "))
      << ran.out;
  EXPECT_NE(ran.out.find(" days "), std::string::npos) << ran.out;
  const std::string page = read_text(scratch.path("page.html"));
  for (const char* part :
       {"<b>qwen3-8b</b><span>model", "<b>100,000,000</b><span>rows", "by sheaf " SHEAF_VERSION, "months old",
        "days", "–$", "<title>rows per second</title>"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  // A line between the names of methods would mean nothing; one between numbers does.
  EXPECT_EQ(page.find("<polyline"), std::string::npos);
  ASSERT_EQ(run_sheaf(scratch,
                      "estimate --model qwen3-8b --document-tokens 300 --records 1000 --hardware h200 "
                      "--sweep documents=1,4 --html " +
                          scratch.path("page.html"))
                .exit_code,
            0);
  EXPECT_NE(read_text(scratch.path("page.html")).find("<polyline"), std::string::npos);
}

TEST(EstimateCommand, CountsAreWholeNumbersAndMemoryIsThatOfTheDevice) {
  const TempFolder scratch;
  const json result =
      estimate_of(scratch,
                  "--model qwen3-8b --document-tokens 333 --questions 2.5 --rows 12345 --sweep "
                  "documents=1,4 --hardware h200");
  ASSERT_EQ(result["cases"].size(), 2u);
  for (const json& each : result["cases"]) {
    for (const char* key : {"documents", "rows", "answers", "steps_per_device", "tokens_computed", "devices"})
      EXPECT_TRUE(each[key].is_number_integer()) << key;
    EXPECT_NEAR(each["memory_gb"]["device"].get<double>(), 141, 1e-9);
    EXPECT_NEAR(each["error"].get<double>(),
                std::hypot(each["error_of_device"].get<double>(), each["error_of_sample"].get<double>()),
                1e-12);
    EXPECT_GT(each["error_of_sample"].get<double>(), 0);
  }
  EXPECT_EQ(result["cases"][1]["documents"], 4);
}

TEST(EstimateCommand, ASweepOverModelsNeedsNoModelOption) {
  const TempFolder scratch;
  const json result =
      estimate_of(scratch, "--sweep model=qwen3-8b,qwen3-1.7b --document-tokens 100 --hardware h100");
  ASSERT_EQ(result["cases"].size(), 2u);
  EXPECT_TRUE(result["cases"][1]["model"] == "qwen3-1.7b");
  EXPECT_LT(result["cases"][1]["seconds"]["work"], result["cases"][0]["seconds"]["work"]);
}

TEST(EstimateCommand, RequestsAndSchemasAreEstimatedToo) {
  const TempFolder scratch;
  const std::string corpus = scratch.write(
      "c.jsonl", R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"messages":[)"
                 R"({"role":"user","content":"Name a prime."}],"max_tokens":16}})"
                 "\n");
  const std::string job =
      scratch.write("job.yaml", "model: {path: qwen3-8b}\ninput: {path: " + corpus +
                                    ", format: openai-batch}\ntask: {kind: chat}\nmethod: {name: ippd}\n"
                                    "output: {path: out/none}\n");
  EXPECT_EQ(estimate_of(scratch, job + " --hardware h200")["tokens_an_answer"], 16);
  EXPECT_EQ(estimate_of(scratch, job + " --hardware h200 --answer-tokens 3")["tokens_an_answer"], 3);
  const json ended = estimate_of(scratch, job + " --hardware h200 --answer-tokens 20");
  EXPECT_EQ(ended["tokens_an_answer"], 16);
  EXPECT_NE(ended["notes"].dump().find("1 of the 1 sampled records have a lower max_tokens"),
            std::string::npos);
  EXPECT_EQ(estimate_of(scratch, job + " --hardware h200 --document-tokens 50")["tokens_an_answer"], 30);
  // An extraction job's schema says what is asked, also of made-up documents.
  const json values = estimate_of(
      scratch, "configs/demo.yaml --model qwen3-8b --document-tokens 200 --hardware h200 --answer-tokens 3");
  const json objects = estimate_of(scratch,
                                   "configs/demo.yaml --model qwen3-8b --document-tokens 200 --hardware h200 "
                                   "--answer-tokens 3 --method standard");
  EXPECT_GT(values["answers"], 5000);
  EXPECT_EQ(objects["answers"], 1000);
  EXPECT_GT(objects["tokens_an_answer"].get<double>(), 20);
  EXPECT_GT(objects["seconds"]["decode"], values["seconds"]["decode"]);
}

TEST(EstimateCommand, SeveralDocumentsAreEstimatedAsOneAndAsChains) {
  const TempFolder scratch;
  const std::string corpus = scratch.write(
      "c.jsonl",
      R"({"q":"Where?","docs":[{"text":"In Oss, by the bridge."},{"text":"Bread is baked."}],"s":[0.9,0.1]})"
      "\n");
  const std::string job = scratch.write(
      "job.yaml", "model: {path: qwen3-8b}\ninput: {path: " + corpus +
                      ", documents: docs, scores: s, question: q}\ntask: {kind: ask}\nmethod: {name: pced}\n"
                      "output: {path: out/none}\n");
  const json result =
      estimate_of(scratch, job + " --hardware h200 --sweep method=pced,ippd --answer-tokens 4");
  ASSERT_EQ(result["cases"].size(), 2u);
  // Three prompts decode an answer together: without a document and with each of them.
  EXPECT_GT(result["cases"][0]["tokens_computed"], result["cases"][1]["tokens_computed"]);
  EXPECT_EQ(result["cases"][0]["tokens_an_answer"], 4);
}

TEST(EstimateCommand, LengthsOfSeveralDocumentsPerRecordAreTaken) {
  const TempFolder scratch;
  const std::string hotpotqa =
      "configs/hotpotqa.yaml --model qwen3-8b --hardware h200 --rows 200 --document-tokens 100 ";
  const auto refused = run_sheaf(scratch, "estimate " + hotpotqa + "--method pced");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--documents-per-record"), std::string::npos) << refused.err;
  const json result = estimate_of(
      scratch,
      hotpotqa +
          "--documents-per-record 10 --sweep method=ippd,pced --answer-tokens 4 --instruction-tokens 50");
  ASSERT_EQ(result["cases"].size(), 2u);
  const auto tokens = [&](size_t i) { return result["cases"][i]["tokens_computed"].get<double>(); };
  EXPECT_NEAR(tokens(0), 200 * (10 * 100 + 12 + 3), 0.05 * tokens(0));
  // Eleven chains a question: each has the question and what is decoded of the answer.
  EXPECT_NEAR(tokens(1) - tokens(0), 200 * 10 * (12 + 3), 0.1 * (tokens(1) - tokens(0)));
  const json top =
      estimate_of(scratch, hotpotqa +
                               "--documents-per-record 10 --method standard --instruction-tokens "
                               "50 --answer-tokens 4 --set input.top_documents=3");
  EXPECT_NEAR(top["tokens_computed"].get<double>(), 200 * (50 + 3 * 100 + 12 + 3), 0.1 * 200 * 365);
  const json alone =
      estimate_of(scratch,
                  "--model qwen3-8b --method pced --document-tokens 100 --documents-per-record 10 --rows 50 "
                  "--hardware h200 --answer-tokens 4");
  EXPECT_GT(alone["tokens_computed"].get<double>(), 50 * 1000);
  const auto one = run_sheaf(
      scratch, "estimate configs/squad.yaml --model qwen3-8b --document-tokens 9 --documents-per-record 2");
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_NE(one.err.find("--documents-per-record"), std::string::npos) << one.err;
}

TEST(EstimateCommand, FindsTheListWhereItIsInstalled) {
  const TempFolder scratch;
  namespace fs = std::filesystem;
  fs::create_directories(scratch.path("bin"));
  fs::create_directories(scratch.path("share/sheaf/configs"));
  fs::copy(SHEAF_BINARY, scratch.path("bin/sheaf"));
  const std::string command = "cd " + scratch.path("bin") +
                              " && ./sheaf estimate --model qwen3-8b --document-tokens " +
                              "10 --hardware h200 >out 2>err";
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_NE(read_text(scratch.path("bin/err")).find("share/sheaf/configs/hardware.yaml"), std::string::npos);
  fs::copy("configs/hardware.yaml", scratch.path("share/sheaf/configs/hardware.yaml"));
  fs::copy("configs/devices", scratch.path("share/sheaf/configs/devices"));
  EXPECT_EQ(std::system(command.c_str()), 0) << read_text(scratch.path("bin/err"));
}

}  // namespace
}  // namespace sheaf

// `sheaf bench` on the CPU with a tiny random model.
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;

const char* const kConfig =
    R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 2, "hidden_size": 32,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
        "vocab_size": 100, "tie_word_embeddings": true, "rms_norm_eps": 1e-6, "rope_theta": 10000,
        "max_position_embeddings": 256, "hidden_act": "silu"})";

/// Two contexts of 10 tokens after an instruction of 5; three questions of 4 tokens each with answers of 3,
/// or two slots with keys of 2 tokens and values of 2.
std::string workload() {
  const json slot{{"key_ids", {7, 8}}, {"value_tokens", 2}};
  json questions;
  for (int first : {1, 2, 3})
    questions.push_back({{"ids", {first, 2, 3, 4}}, {"answer_tokens", 3}, {"slots", {slot, slot}}});
  std::string text = json{{"name", "tiny"}, {"instruction_ids", {9, 9, 9, 9, 9}}}.dump() + "\n";
  for (int context : {20, 30})
    text += json{{"context_ids", std::vector<int>(10, context)}, {"questions", questions}}.dump() + "\n";
  return text;
}

class BenchCommand : public testing::Test {
 protected:
  Ran bench(const std::string& options) const {
    return run_sheaf(scratch_, "bench " + scratch_.write("w.jsonl", workload()) + " " + options);
  }
  std::string tiny() const { return "--shape " + scratch_.write("config.json", kConfig) + " "; }
  json report(const std::string& options) const {
    const Ran ran = bench(tiny() + "--device cpu " + options);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return json::parse(ran.out);
  }
  TempFolder scratch_;
};

TEST_F(BenchCommand, TimesAttentionAlone) {
  const std::string sizes = "bench --attention --device cpu --heads 4 --kv-heads 2 --head-dim 16 ";
  const Ran ran = run_sheaf(scratch_, sizes + "--batch 2,32 --prefix 512,2048 --suffix 8 --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json found = json::parse(ran.out);
  EXPECT_EQ(found["kv_heads"], 2);
  ASSERT_EQ(found["rows"].size(), 4u);
  EXPECT_EQ(found["rows"][3]["batch"], 32);
  EXPECT_EQ(found["rows"][3]["prefix"], 2048);
  EXPECT_TRUE(found["rows"][3]["separate"].is_number()) << "65,792 keys take time on any machine";
  const Ran table = run_sheaf(scratch_, sizes + "--batch 2 --prefix 64 --suffix 1");
  EXPECT_NE(table.out.find("a layer of 4 heads of 16, 2 for keys and values"), std::string::npos)
      << table.out;
  for (const auto& [options, part] :
       {std::pair{"--attention --kv-heads 3", "--kv-heads 3: it must divide --heads 8"},
        {"--attention --batch 0", "--batch"},
        {"--attention --model x.gguf --random-weights", "--model"},
        {"--batch 4", "--attention"}}) {
    const Ran refused = run_sheaf(scratch_, std::string("bench --device cpu ") + options);
    EXPECT_EQ(refused.exit_code, 2) << options;
    EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
  }
}

TEST_F(BenchCommand, LimitsTheQuestionsOfAPrompt) {
  const json all = report("--method ippd"), few = report("--method ippd --questions 2");
  EXPECT_EQ(all["tokens"], few["tokens"]) << "prompts of a context share it";
  EXPECT_EQ(few["items"], 6);
  const Ran refused = bench(tiny() + "--device cpu --method prefix --questions 2");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--questions 2: method.questions does not work with method.name prefix"),
            std::string::npos)
      << refused.err;
}

TEST_F(BenchCommand, ComputesTheFloorWhenEverythingIsShared) {
  const json result = report("--method ippd --random-weights");
  EXPECT_EQ(result["workload"], "tiny");
  EXPECT_EQ(result["weights"], "random");
  EXPECT_EQ(result["items"], 6);
  EXPECT_EQ(result["tokens"], 5 + 2 * (10 + 3 * (4 + 2)));
  EXPECT_EQ(result["tokens_floor"], result["tokens"]);
  EXPECT_EQ(result["tera_flops"]["done"], result["tera_flops"]["floor"]);
  const double seconds = result["seconds"]["work"];
  EXPECT_NEAR(result["items_per_second"].get<double>() * seconds, 6, 1e-9);
  EXPECT_NEAR(result["share_of_limit"].get<double>(),
              result["items_per_second"].get<double>() / result["limit_per_second"].get<double>(), 1e-12);
  EXPECT_GE(result["seconds"]["start_up"].get<double>(),
            result["seconds"]["start_up_parts"]["weights"].get<double>());
  EXPECT_GT(result["memory_gb"]["kv_peak"].get<double>(), 0);
  EXPECT_LE(result["memory_gb"]["kv_peak"].get<double>(), result["memory_gb"]["kv_pool"].get<double>());
}

TEST_F(BenchCommand, OnePromptPerQuestionComputesMore) {
  const json result = report("--method standard");
  EXPECT_EQ(result["tokens"], 6 * (5 + 10 + 4 + 2));
  EXPECT_GT(result["tera_flops"]["done"]["attention"].get<double>(),
            result["tera_flops"]["floor"]["attention"].get<double>());
}

TEST_F(BenchCommand, DecodesTheSlotsWithHpd) {
  // Each context is an instruction of its own here, so that the common one is computed twice.
  const json result = report("--method hpd");
  EXPECT_EQ(result["tokens"], 2 * (5 + 10 + 3 * (4 + 2 * (2 + 1))));
  EXPECT_EQ(result["tokens_floor"], result["tokens"].get<int>() - 5);
}

TEST_F(BenchCommand, EveryRepeatComputesTheWholePrompt) {
  const json result = report("--method ippd --repeat 3");
  EXPECT_EQ(result["seconds"]["runs"].size(), 3u);
  EXPECT_EQ(result["tokens"], result["tokens_floor"]) << "nothing of the run before may be found resident";
  EXPECT_GE(result["items_per_second_best"].get<double>(), result["items_per_second"].get<double>());
}

TEST_F(BenchCommand, ReadsTheWorkloadsOfTheGenerator) {
  const std::string make =
      "python3 bench/make_workloads.py --contexts 1 --vocab 1100 " + scratch_.path("made");
  ASSERT_EQ(std::system((make + " squad2 catalog >/dev/null").c_str()), 0);
  std::string config = kConfig;
  config.replace(config.find("\"vocab_size\": 100"), 17, "\"vocab_size\": 1100");
  const std::string shape = " --device cpu --shape " + scratch_.write("config.json", config);
  for (const auto& [name, method] : {std::pair{"squad2", "ippd"}, {"catalog", "hpd"}}) {
    const Ran ran =
        run_sheaf(scratch_, "bench " + scratch_.path("made/") + name + ".jsonl --method " + method + shape);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(json::parse(ran.out)["workload"].get<std::string>().rfind(name, 0), 0u);
  }
}

TEST_F(BenchCommand, GpuTableWithoutAGpuIsRefused) {
  const std::string command = "CUDA_VISIBLE_DEVICES= SHEAF=" + std::string(SHEAF_BINARY) +
                              " OUT=" + scratch_.path("out") + " bench/gpu_table 2>" + scratch_.path("err");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
  EXPECT_NE(read_text(scratch_.path("err")).find("no CUDA device"), std::string::npos);
}

TEST_F(BenchCommand, WrongOptionsAreRefusedWithAReason) {
  for (const auto& [options, reason] : std::vector<std::pair<std::string, std::string>>{
           {tiny() + "--device 99", "--device cuda:99"},
           {tiny() + "--device gpu", "use auto, cpu, cpu:N, cuda"},
           {"--device cpu --shape nonsense", "qwen3-8b"},
           {"--device cpu --shape qwen3-32b", "GB"},
           {tiny() + "--model build/models", "--model"},
           {tiny() + "--method nonsense", "--method"},
       }) {
    const Ran ran = bench(options);
    EXPECT_EQ(ran.exit_code, 2) << options;
    EXPECT_NE(ran.err.find(reason), std::string::npos) << options << ran.err;
  }
}

}  // namespace
}  // namespace sheaf

// What schedulers see of a run: which part it takes, and how it ends.
#include <gtest/gtest.h>
#include <map>

#include "io/machine/backend_kinds.h"
#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;

class Cluster : public testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < 50; ++i)
      lines += i == 17
                   ? "{broken\n"
                   : json{{"c", "Box " + std::to_string(i) + " holds tea."}, {"q", "What?"}}.dump() + "\n";
    scratch_.write("corpus.jsonl", lines);
    scratch_.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch_) +
                                   ", chat: plain}\ninput: {path: " + scratch_.path("corpus.jsonl") +
                                   ", context: c, question: q}\ntask: {kind: ask}\n"
                                   "method: {name: ippd, max_value_tokens: 4, temperature: 1}\n"
                                   "engine: {device: cpu, window: 4}\noutput: {path: " +
                                   scratch_.path("out") + "}\n");
  }

  /// Runs the job with some variables set.
  Ran run(const std::string& variables, const std::string& more, const std::string& folder = "out") const {
    return run_sheaf(scratch_,
                     "run " + scratch_.path("job.yaml") +
                         " --quiet --set output.path=" + scratch_.path(folder) + " " + more,
                     variables.empty() ? "." : ". && export " + variables);
  }
  std::string refusal(const std::string& variables, const std::string& more = "--shard auto") const {
    const Ran ran = run(variables, more, "refused");
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(scratch_.path("refused")));
    return ran.err;
  }
  /// Which part a run took: "2/4".
  std::string part(const std::string& variables, const std::string& more) const {
    std::filesystem::remove_all(scratch_.path("part"));
    const Ran ran = run(variables, "--shard auto --exit-zero-on-rejects " + more, "part");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    if (ran.exit_code != 0) return {};
    const json shard =
        json::parse(read_text(scratch_.path("part/manifest.json"))).at("fingerprint").at("shard");
    return std::to_string(shard.at("index").get<int>()) + "/" + std::to_string(shard.at("count").get<int>());
  }

  TempFolder scratch_;
};

TEST_F(Cluster, ShardAutoFollowsTheScheduler) {
  const std::string slurm = "SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=5";
  EXPECT_EQ(part(slurm + " SLURM_ARRAY_TASK_MAX=8", ""), "2/4");
  EXPECT_EQ(part(slurm, ""), "2/4");
  // A part of an array that is run again: the number is the part.
  EXPECT_EQ(part(slurm + " SLURM_ARRAY_TASK_MAX=20", "--shards 10"), "7/10");
  EXPECT_EQ(part("JOB_COMPLETION_INDEX=0", "--shards 3"), "0/3");
  EXPECT_EQ(part("AWS_BATCH_JOB_ARRAY_INDEX=1 AWS_BATCH_JOB_ARRAY_SIZE=2", ""), "1/2");
  EXPECT_EQ(part("AWS_BATCH_JOB_ARRAY_INDEX=1", "--shards 5"), "1/5");
  EXPECT_EQ(part("SHEAF_SHARD=3/6", ""), "3/6");
}

TEST_F(Cluster, ATaskThatFindsNoGpuEndsInsteadOfUsingItsCpu) {
  const Ran ran = run("CUDA_VISIBLE_DEVICES=", "--device cuda", "gpu");
  const bool with_cuda = backend_kind(Device::Kind::cuda).missing.empty();
  EXPECT_EQ(ran.exit_code, with_cuda ? 3 : 2) << ran.err;
  EXPECT_NE(ran.err.find(with_cuda ? "engine.device: cuda: this machine has no GPU that CUDA can see"
                                   : "this program was built without CUDA; use a build with CUDA"),
            std::string::npos)
      << ran.err;
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("gpu")));
}

TEST_F(Cluster, TheFilesAskForAGpuAndForTheImageThatHasCuda) {
  const auto file = [](const std::string& name) { return read_text(SHEAF_SOURCE_DIR "/" + name); };
  const std::string parts = file("configs/cluster/kubernetes-parts.yaml");
  EXPECT_NE(parts.find("- --device\n            - cuda "), std::string::npos);
  EXPECT_NE(file("configs/cluster/slurm-array.sbatch").find("--device \"${DEVICE:-cuda}\""),
            std::string::npos);
  const std::string built = file("Dockerfile.cuda");
  const size_t tag = built.find(" -t ") + 4;
  const std::string image = built.substr(tag, built.find(' ', tag) - tag);
  for (const char* name : {"configs/cluster/kubernetes-parts.yaml", "configs/cluster/kubernetes-merge.yaml"})
    EXPECT_NE((file(name) + "\n").find("image: " + image), std::string::npos) << name << ", " << image;
}

TEST_F(Cluster, AShardOfOnlyBadRecordsStopsNoOther) {
  const std::string bad = "--shard auto --set engine.window=1 ";
  EXPECT_EQ(part("SHEAF_SHARD=17/50", "--set engine.window=1"), "17/50");
  EXPECT_EQ(run("SHEAF_SHARD=17/50", bad, "bad").exit_code, 1);
  EXPECT_TRUE(std::filesystem::exists(scratch_.path("bad/_SUCCESS")));
}

TEST_F(Cluster, ShardAutoIsRefusedWhereItIsAmbiguous) {
  EXPECT_EQ(
      refusal(""),
      "sheaf: --shard auto: no scheduler says which part to run: SLURM_ARRAY_TASK_ID, "
      "JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX and SHEAF_SHARD are not set; submit an array, or "
      "give --shard I/N\n");
  const std::map<std::string, std::string> wrong = {
      {"JOB_COMPLETION_INDEX=2",
       "JOB_COMPLETION_INDEX does not say how many parts there are; give --shards N"},
      {"JOB_COMPLETION_INDEX=x", "JOB_COMPLETION_INDEX=x is not a number of 0 or more"},
      {"JOB_COMPLETION_INDEX=2 SLURM_ARRAY_TASK_ID=2",
       "SLURM_ARRAY_TASK_ID and JOB_COMPLETION_INDEX are set, and only one can say which part to run"},
      {"SLURM_ARRAY_TASK_ID=1", "SLURM_ARRAY_TASK_COUNT and SLURM_ARRAY_TASK_MIN are not set"},
      {"SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=9",
       "the array's 2 tasks are not numbered from 3 to 9 without gaps"},
      {"SLURM_ARRAY_TASK_ID=9 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=3",
       "SLURM_ARRAY_TASK_ID says part 6, but there are 2 (0 to 1)"},
      {"SHEAF_SHARD=6/6", "--shard must be I/N with 0 ≤ I < N, for example 0/4; got 6/6"}};
  for (const auto& [variables, said] : wrong)
    EXPECT_NE(refusal(variables).find(said), std::string::npos) << variables << ": " << refusal(variables);
  EXPECT_NE(refusal("SHEAF_SHARD=1/6", "--shard auto --shards 4").find("but --shards is 4"),
            std::string::npos);
  EXPECT_NE(refusal("", "--shard 0/4 --shards 4").find("--shards 4 works only with --shard auto"),
            std::string::npos);
}

TEST_F(Cluster, AnArrayAndItsMergeGiveTheRowsOfOneRun) {
  EXPECT_EQ(run("", "").exit_code, 1);
  std::string shards;
  for (int i = 0; i < 3; ++i) {
    const std::string id = std::to_string(i);
    const Ran ran =
        run("SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=2 SLURM_ARRAY_TASK_COUNT=3 "
            "SLURM_ARRAY_TASK_ID=" +
                id,
            "--shard auto --exit-zero-on-rejects", "s" + id);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    shards += " " + scratch_.path("s" + id);
  }
  EXPECT_EQ(run_sheaf(scratch_, "merge " + scratch_.path("all") + shards).exit_code, 1);
  EXPECT_EQ(run_sheaf(scratch_, "merge --exit-zero-on-rejects " + scratch_.path("zero") + shards).exit_code,
            0);
  const auto rows = [&](const std::string& folder) {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path(folder)))
      if (entry.path().filename().string().starts_with("rows-"))
        found[entry.path().filename()] = read_text(entry.path());
    std::string all;
    for (const auto& [name, text] : found) all += text;
    return all;
  };
  EXPECT_EQ(rows("all"), rows("out"));
  EXPECT_EQ(read_text(scratch_.path("all/rejects.jsonl")), read_text(scratch_.path("out/rejects.jsonl")));
}

TEST_F(Cluster, ExitCodesAreInTheHelp) {
  const Ran help = run_sheaf(scratch_, "--help");
  EXPECT_NE(help.out.find("75"), std::string::npos) << help.out;
  EXPECT_NE(help.out.find("failed for now (device, disk or store): try again"), std::string::npos)
      << help.out;
}

}  // namespace
}  // namespace sheaf

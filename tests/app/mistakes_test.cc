// Mistakes at the terminal: the message names the thing and the way out.
#include <gtest/gtest.h>

#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using test::Ran;
using test::run_sheaf;
using test::Scratch;

struct Mistake {
  std::string arguments, said;
};

TEST(Mistakes, AreNamedWithTheFix) {
  const Scratch scratch;
  const std::string model = test::make_tiny_model(scratch);
  scratch.write("corpus.jsonl", "{\"c\": \"Box\", \"q\": \"What?\"}\n");
  const std::string job = scratch.write(
      "job.yaml", "model: {path: " + model + "}\ninput: {path: " + scratch.file("corpus.jsonl") +
                      ", context: c, question: q}\ntask: {kind: ask}\nmethod: {name: ippd}\n"
                      "engine: {device: cpu}\noutput: {path: " +
                      scratch.file("out") + "}\n");
  const std::string run = "run " + job + " --quiet ";
  scratch.write("cut.gguf", "GGUF\3");
  const std::vector<Mistake> mistakes = {
      {"", "give a command: run, "},
      {"rum " + job, "unknown command \"rum\"; did you mean \"run\"?"},
      {"run", "JOB is required; see `sheaf run --help`"},
      {run + "--lmit 3", "unknown option --lmit; did you mean \"--limit\"?"},
      {"plan " + job + " --dump -1", "--dump: must be a whole number of at least 0; got -1"},
      {"run " + scratch.file("no.yaml"), "no.yaml: the file cannot be read: No such file or directory"},
      {run + "--set nonsense", "--set nonsense: write it as key.path=value"},
      {run + "--set method.nme=ippd", "unknown key \"nme\"; did you mean \"name\"?"},
      {run + "--set method.name=hpd", "for ask use one of ippd, "},
      {run + "--set model.path=/no/model", "model.path: no such file or folder: /no/model"},
      {run + "--set model.path=" + scratch.file("cut.gguf"), "cut.gguf: "},
      {run + "--set model.path=" + scratch.file("corpus.jsonl"),
       "is neither a GGUF file, a safetensors file"},
      {run + "--set input.context=d", "has no column \"d\"; use one of c, q"},
      {run + "--set engine.device=gpu", "unknown device \"gpu\"; use auto, cpu, cuda, cuda:N or N"},
      {run + "--set output.path=" + job, "a file of that name is in the way"},
      {run + "--shard 4/4", "--shard must be I/N with 0 ≤ I < N, for example 0/4; got 4/4"},
      {run + "--log /no/log",
       "--log: sheaf cannot write /no/log: the folder /no does not exist; create it first"},
      {"report " + scratch.file("."), "has no report.json; name the output folder of a run"},
      {"merge " + scratch.file("all") + " " + scratch.file("no"), "no: no such folder"},
  };
  for (const Mistake& mistake : mistakes) {
    const Ran ran = run_sheaf(scratch, mistake.arguments);
    EXPECT_EQ(ran.exit_code, 2) << mistake.arguments;
    EXPECT_TRUE(ran.err.starts_with("sheaf: ")) << ran.err;
    EXPECT_NE(ran.err.find(mistake.said), std::string::npos) << mistake.arguments << "\n" << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(Mistakes, AResultThatDoesNotReachAFullDiskIsNoSuccess) {
  SKIP_UNLESS(std::filesystem::exists("/dev/full"), test::Lacking::full_device, "/dev/full is missing");
  const Scratch scratch;
  for (const char* command :
       {"man", "doctor", "--help", "inspect --json datasets/catalog/catalog.jsonl", "completion bash"}) {
    const std::string line =
        std::string(SHEAF_BINARY) + " " + command + " >/dev/full 2>" + scratch.file("err");
    const int status = std::system(line.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 3) << command;
    EXPECT_NE(test::read_text(scratch.file("err")).find("is the disk full?"), std::string::npos) << command;
  }
}

TEST(Mistakes, ARunWhoseSummaryIsLostIsDoneAllTheSame) {
  SKIP_UNLESS(std::filesystem::exists("/dev/full"), test::Lacking::full_device, "/dev/full is missing");
  const Scratch scratch;
  scratch.write("corpus.jsonl", "{\"c\": \"Box\", \"q\": \"What?\"}\n");
  const std::string job = scratch.write(
      "job.yaml",
      "model: {path: " + test::make_tiny_model(scratch) +
          ", chat: plain}\ninput: {path: " + scratch.file("corpus.jsonl") +
          ", context: c, question: q}\ntask: {kind: ask}\nmethod: {name: ippd, max_value_tokens: 4}\n"
          "engine: {device: cpu}\noutput: {path: " +
          scratch.file("out") + "}\n");
  const std::string run =
      std::string(SHEAF_BINARY) + " run " + job + " --restart >/dev/full 2>" + scratch.file("err");
  EXPECT_EQ(WEXITSTATUS(std::system(run.c_str())), 0) << test::read_text(scratch.file("err"));
  EXPECT_TRUE(std::filesystem::exists(scratch.file("out/_SUCCESS")));
  const std::string json =
      std::string(SHEAF_BINARY) + " run " + job + " --restart --json >/dev/full 2>" + scratch.file("err");
  EXPECT_EQ(WEXITSTATUS(std::system(json.c_str())), 3) << "its report was asked for";
}

}  // namespace
}  // namespace sheaf

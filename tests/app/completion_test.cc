// Completion scripts and the man page, made from the program's own commands and options.
#include <gtest/gtest.h>

#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using test::Ran;
using test::run_sheaf;

bool has_tool(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

/// Standard output and error of a command of the shell, in a folder.
std::string output_of(const TempFolder& scratch, const std::string& command) {
  const Ran ran = test::run_shell(scratch, "cd " + scratch.path() + " && " + command + " 2>&1");
  EXPECT_EQ(ran.exit_code, 0) << command;
  return ran.out;
}

class Completion : public testing::Test {
 protected:
  void SetUp() override {
    const Ran ran = run_sheaf(scratch_, "completion bash");
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    scratch_.write("sheaf.bash", ran.out);
  }

  /// What bash offers, with `|` between, for words of which the last is being written.
  std::string offered(const std::vector<std::string>& words) const {
    std::string array;
    for (const std::string& word : words) array += " '" + word + "'";
    scratch_.write("try.bash", "source ./sheaf.bash\nCOMP_WORDS=(sheaf" + array +
                                   ")\nCOMP_CWORD=" + std::to_string(words.size()) +
                                   "\n_sheaf\nIFS='|'\necho \"${COMPREPLY[*]}\"\n");
    std::string text = output_of(scratch_, "bash try.bash");
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }

  TempFolder scratch_;
};

TEST_F(Completion, BashOffersCommandsOptionsChoicesAndFiles) {
  EXPECT_EQ(output_of(scratch_, "bash -n sheaf.bash"), "");
  EXPECT_EQ(offered({"ru"}), "run");
  EXPECT_EQ(offered({"run", "--re"}), "--reproducible|--restart|--reuse|--reuse-if-exists|--require-reuse");
  EXPECT_EQ(offered({"completion", ""}), "bash|zsh");
  EXPECT_EQ(offered({"he"}), "help");
  EXPECT_EQ(offered({"help", "pl"}), "plan");
  EXPECT_EQ(offered({"bench", "--method", "i"}), "ippd");
  EXPECT_EQ(offered({"bench", "--method", "=", "h"}), "hpd");
  EXPECT_EQ(offered({"run", "--device", "c"}), "cpu|cuda|cuda:N");
  EXPECT_EQ(offered({"run", "--limit", ""}), "") << "a number";
  scratch_.write("my job.yaml", "");
  EXPECT_EQ(offered({"run", "my"}), "my job.yaml");
  EXPECT_EQ(offered({"report", "--out", "my"}), "my job.yaml");
  EXPECT_EQ(offered({"score", "--no-answer", "my"}), "") << "a text";
  EXPECT_EQ(offered({"merge", "my"}), "my job.yaml");
}

TEST_F(Completion, BashOffersKeysDevicesShapesAndFormats) {
  EXPECT_EQ(offered({"run", "--set", "method.do"}),
            "method.documents=|method.document_temperature=|method.document_scale=");
  EXPECT_EQ(offered({"plan", "job.yaml", "--set", "cost."}),
            "cost.usd_per_hour=|cost.devices=|cost.hardware=");
  EXPECT_EQ(offered({"run", "--set", "method.documents", "="}), "") << "any value";
  EXPECT_EQ(offered({"run", "--set", "task.kind", "="}), "extract|ask|chat");
  EXPECT_EQ(offered({"run", "--set", "output.format", "=", "p"}), "parquet");
  EXPECT_EQ(offered({"run", "--set", "output.logprobs", "=", ""}), "true|false");
  EXPECT_EQ(offered({"run", "--set", "engine.device", "=", "cu"}), "cuda");
  scratch_.write("my.parquet", "");
  EXPECT_EQ(offered({"run", "--set", "input.path", "=", "my"}), "my.parquet");
  EXPECT_EQ(offered({"run", "--reuse", "my"}), "my.parquet");
  EXPECT_EQ(offered({"estimate", "--hardware", "l4,h"}), "l4,h100|l4,h200");
  EXPECT_EQ(offered({"run", "--set", "method.documents", "=", "4"}), "");
  EXPECT_EQ(offered({"estimate", "--hardware", "h"}), "h100|h200");
  EXPECT_EQ(offered({"estimate", "--model", "qwen3-8"}), "qwen3-8b");
  EXPECT_EQ(offered({"bench", "--shape", "smollm2-13"}), "smollm2-135m");
  scratch_.write("squad.json", "");
  EXPECT_EQ(offered({"convert", "squ"}), "squad|squad.json");
}

TEST_F(Completion, ZshTakesItsScript) {
  const Ran ran = run_sheaf(scratch_, "completion zsh");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("#compdef sheaf\n"));
  EXPECT_NE(ran.out.find("\n        'run:Run a job"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("(hpd ippd parallel-prompting standard separate prefix pced ape seqbatch)"),
            std::string::npos)
      << ran.out;
  SKIP_UNLESS(has_tool("zsh"), test::Lacking::tool,
              "zsh is not here to read the script; apt-get install zsh");
  scratch_.write("_sheaf", ran.out);
  EXPECT_EQ(output_of(scratch_, "zsh -n _sheaf"), "");
  EXPECT_EQ(output_of(scratch_,
                      "zsh -fc 'autoload -U compinit && compinit -D && source ./_sheaf && whence -w _sheaf'"),
            "_sheaf: function\n");
}

TEST_F(Completion, OtherShellsAreRefused) {
  const Ran ran = run_sheaf(scratch_, "completion fish");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("bash"), std::string::npos) << ran.err;
}

TEST(Man, HasEveryCommandAndIsCleanRoff) {
  const TempFolder scratch;
  const Ran ran = run_sheaf(scratch, "man");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  size_t at = 0;
  for (const char* section :
       {"NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "EXIT STATUS", "FILES", "ENVIRONMENT", "EXAMPLES"}) {
    const size_t found = ran.out.find("\n.SH " + std::string(section) + "\n", at);
    ASSERT_NE(found, std::string::npos) << section;
    at = found;
  }
  for (const char* command : {"run", "merge", "plan", "verify", "report", "doctor", "completion"})
    EXPECT_NE(ran.out.find("\n.SS " + std::string(command) + "\n"), std::string::npos) << command;
  EXPECT_NE(ran.out.find("\\fB\\-q\\fR, \\fB\\-\\-quiet\\fR\nPrint no progress"), std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("\\fBNO_COLOR\\fR"), std::string::npos);
  SKIP_UNLESS(has_tool("groff"), test::Lacking::tool,
              "groff is not here to set the page; apt-get install groff");
  scratch.write("sheaf.1", ran.out);
  EXPECT_EQ(output_of(scratch, "groff -man -ww -Tutf8 -z sheaf.1"), "");
}

}  // namespace
}  // namespace sheaf

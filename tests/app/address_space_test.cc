// Keys and values are given what memory allows: a job under a limit on its address space takes less.
#include <gtest/gtest.h>

#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using test::Ran;

class AddressSpace : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_UNLESS(!test::kAddressSanitizer, test::Lacking::plain_memory,
                "the address sanitizer reserves terabytes");
    const std::string model = test::make_tiny_model(scratch_);
    std::string lines;
    for (int i = 0; i < 40; ++i)
      lines += nlohmann::json{{"n", i}, {"c", "Box " + std::to_string(i)}, {"q", "What?"}}.dump() + "\n";
    scratch_.write("rows.jsonl", lines);
    job_ = scratch_.write("job.yaml", "model: {path: " + model +
                                          ", chat: plain}\ninput: {path: " + scratch_.path("rows.jsonl") +
                                          ", id: n, context: c, question: q}\ntask: {kind: ask}\n"
                                          "method: {name: ippd, max_value_tokens: 4}\n"
                                          "engine: {device: cpu, threads: 1}\noutput: {path: out}\n");
  }

  /// `kibibytes`: 0 for no limit.
  Ran run(int64_t kibibytes, const std::string& folder, const std::string& settings) const {
    const std::string limit =
        kibibytes > 0 ? "ulimit -v " + std::to_string(kibibytes) + " && exec " : "exec ";
    return test::run_shell(scratch_, "( " + limit + SHEAF_BINARY + " run " + job_ +
                                         " --quiet --restart --set output.path=" + scratch_.path(folder) +
                                         settings + " )");
  }
  std::string rows(const std::string& folder) const {
    return read_text(scratch_.path(folder) + "/rows-00000.jsonl");
  }

  TempFolder scratch_;
  std::string job_;
};

TEST_F(AddressSpace, APoolThatCannotBeAllocatedIsMadeSmaller) {
  // What the program takes besides keys and values depends on its libraries.
  const std::string small = " --set engine.kv_memory_gb=0.001";
  int64_t least = 64 << 10;
  while (least < int64_t{64} << 20 && run(least, "small", small).exit_code != 0) least += least / 4;
  ASSERT_EQ(run(0, "free", small).exit_code, 0);
  const std::string expected = rows("free");
  ASSERT_EQ(rows("small"), expected);
  const int64_t limit = least + (400 << 10);
  for (const std::string kernels : {"auto", "reference"})
    for (const std::string memory : {"auto", "0.3", "2", "1000000"}) {
      const Ran ran =
          run(limit, "tight", " --set engine.kernels=" + kernels + " --set engine.kv_memory_gb=" + memory);
      EXPECT_EQ(ran.exit_code, 0) << kernels << ", " << memory << ": " << ran.err;
      EXPECT_EQ(rows("tight"), expected) << kernels << ", " << memory;
    }
}

TEST_F(AddressSpace, APoolLargerThanTheMachineIsMadeSmaller) {
  const Ran ran = run(0, "large", " --set engine.kv_memory_gb=1000000");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

}  // namespace
}  // namespace sheaf

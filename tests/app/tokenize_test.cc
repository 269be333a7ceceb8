// `sheaf tokenize` as a user calls it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>

#include "tests/io/temp_folder.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

const std::string model = "build/models/smollm2.gguf";

struct Outcome {
  int code;
  std::string out;
};

Outcome tokenize(const std::string& options, const std::string& input) {
  const TempFolder folder;
  const std::string file = folder.write("in", input);
  const std::string command =
      std::string(SHEAF_BINARY) + " tokenize --model " + options + " < " + file + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, got);
  return {WEXITSTATUS(pclose(pipe)), out};
}

class Tokenize : public ::testing::Test {
 protected:
  void SetUp() override { NEED_MODEL(); }
};

TEST_F(Tokenize, LinesOfText) {
  EXPECT_EQ(tokenize(model, "The capital of France is Paris.\n\nThe").out,
            "[504, 3575, 282, 4649, 314, 7042, 30]\n[]\n[504]\n");
}

TEST_F(Tokenize, SpecialTokens) {
  EXPECT_EQ(tokenize(model, "The<|im_end|>\n").out, "[504, 2]\n");
  EXPECT_EQ(tokenize(model + " --raw", "<|im_end|>\n").out.find("[2]"), std::string::npos);
  EXPECT_EQ(tokenize(model + " --bos --eos", "The\n").out, "[1, 504, 2]\n");
}

TEST_F(Tokenize, JsonLinesAndBack) {
  const std::string lines = "\"a\\nb\\u0000c\"\n\"\"\n\"<|im_end|> \xC3\xA9\"\n";
  const Outcome ids = tokenize(model + " --json-lines", lines);
  EXPECT_EQ(ids.code, 0);
  EXPECT_EQ(tokenize(model + " --decode --json-lines", ids.out).out, lines);
}

TEST_F(Tokenize, NulAndInvalidBytesAreText) {
  const Outcome ids = tokenize(model, std::string("a\0b\xFFz\n", 6));
  EXPECT_EQ(ids.code, 0);
  EXPECT_EQ(tokenize(model + " --decode", ids.out).out, std::string("a\0b\uFFFDz\n", 8));
}

TEST_F(Tokenize, ErrorsNameTheLine) {
  const Outcome bad = tokenize(model + " --json-lines", "\"fine\"\n\"not\n");
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.out.find("line 2"), std::string::npos) << bad.out;
  const Outcome range = tokenize(model + " --decode", "[1]\n[1, 99999999]\n");
  EXPECT_EQ(range.code, 2);
  EXPECT_NE(range.out.find("line 2"), std::string::npos) << range.out;
  EXPECT_NE(range.out.find("49151"), std::string::npos) << range.out;
}

TEST_F(Tokenize, RefusesWhatIsNoTokenizer) {
  EXPECT_EQ(tokenize("no/such/file", "").code, 2);
  const TempFolder folder;
  const Outcome other = tokenize(folder.write("x.bin", "hello"), "");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.out.find("x.bin"), std::string::npos) << other.out;
}

}  // namespace
}  // namespace sheaf

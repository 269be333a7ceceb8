// `sheaf tokenize` as a user calls it.
#include <gtest/gtest.h>
#include <string>

#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using test::Ran, test::run_sheaf;

const std::string model = "build/models/smollm2.gguf";

Ran tokenize(const std::string& options, const std::string& input) {
  const TempFolder folder;
  return run_sheaf(folder, "tokenize --model " + options + " < " + folder.write("in", input) + " 2>&1");
}

class Tokenize : public ::testing::Test {
 protected:
  void SetUp() override { NEED_MODEL(); }
};

TEST_F(Tokenize, LinesOfTextBecomeIds) {
  EXPECT_EQ(tokenize(model, "The capital of France is Paris.\n\nThe").out,
            "[504, 3575, 282, 4649, 314, 7042, 30]\n[]\n[504]\n");
}

TEST_F(Tokenize, SpecialTokensAreReadUnlessRaw) {
  EXPECT_EQ(tokenize(model, "The<|im_end|>\n").out, "[504, 2]\n");
  EXPECT_EQ(tokenize(model + " --raw", "<|im_end|>\n").out.find("[2]"), std::string::npos);
  EXPECT_EQ(tokenize(model + " --bos --eos", "The\n").out, "[1, 504, 2]\n");
}

TEST_F(Tokenize, JsonLinesAreDecodedBack) {
  const std::string lines = "\"a\\nb\\u0000c\"\n\"\"\n\"<|im_end|> \xC3\xA9\"\n";
  const Ran ids = tokenize(model + " --json-lines", lines);
  EXPECT_EQ(ids.exit_code, 0);
  EXPECT_EQ(tokenize(model + " --decode --json-lines", ids.out).out, lines);
}

TEST_F(Tokenize, NulAndInvalidBytesAreTokenized) {
  const Ran ids = tokenize(model, std::string("a\0b\xFFz\n", 6));
  EXPECT_EQ(ids.exit_code, 0);
  EXPECT_EQ(tokenize(model + " --decode", ids.out).out, std::string("a\0b\uFFFDz\n", 8));
}

TEST_F(Tokenize, ErrorsNameTheLine) {
  const Ran bad = tokenize(model + " --json-lines", "\"fine\"\n\"not\n");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(bad.out.find("line 2"), std::string::npos) << bad.out;
  const Ran range = tokenize(model + " --decode", "[1]\n[1, 99999999]\n");
  EXPECT_EQ(range.exit_code, 2);
  EXPECT_NE(range.out.find("line 2"), std::string::npos) << range.out;
  EXPECT_NE(range.out.find("49151"), std::string::npos) << range.out;
}

TEST_F(Tokenize, AFileThatIsNoTokenizerIsRefused) {
  EXPECT_EQ(tokenize("no/such/file", "").exit_code, 2);
  const TempFolder folder;
  const Ran other = tokenize(folder.write("x.bin", "hello"), "");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.out.find("x.bin"), std::string::npos) << other.out;
}

}  // namespace
}  // namespace sheaf

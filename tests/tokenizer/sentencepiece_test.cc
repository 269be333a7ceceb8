// Our own engine for plain SentencePiece BPE models against the library, which is the definition.
#include <filesystem>
#include <gtest/gtest.h>
#include <random>

#include "core/base/error.h"
#include "core/tokenizer/read_tokenizer.h"
#include "io/base/mapped_file.h"
#include "tests/skip.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {
namespace {

class Engines : public ::testing::TestWithParam<std::string> {};

TEST_P(Engines, GiveTheSameIds) {
  const std::string path = "../shared/tokenizers/" + GetParam() + "/tokenizer.model";
  NEED_SHARED(path);
  const auto file = MappedFile::open(path);
  const auto ours = read_sentencepiece(file->text(), path);
  const auto library = read_sentencepiece(file->text(), path, true);
  ASSERT_NE(ours->describe(), library->describe());
  const std::vector<std::string> parts = {
      " ",      "  ",           "\n",         "the",    " quick", "tion", "Ab",     "12", ",", "\u2581",
      "\u00e9", "\u65e5\u672c", "\U0001F999", "\u0301", "<s>",    "</s>", "<0x41>", "\t", "'s"};
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (size_t i = random() % 20; i > 0; --i) {
      if (random() % 4 == 0)
        append_utf8(static_cast<uint32_t>(0x20 + random() % 0x3000), text);
      else
        text += parts[random() % parts.size()];
    }
    ASSERT_EQ(ids_of(*ours, text), ids_of(*library, text)) << text;
    const Tokens ids = ids_of(*ours, text);
    ASSERT_EQ(ours->decode(ids, false), library->decode(ids, false));
  }
  EXPECT_EQ(ours->bos, 1);
  EXPECT_EQ(ours->eos, 2);
  EXPECT_EQ(ours->end_tokens, Tokens{2});
  EXPECT_EQ(ours->find("\n"), library->find("\n"));
}

INSTANTIATE_TEST_SUITE_P(Models, Engines, ::testing::Values("llama2", "mistral-v1"), [](const auto& chosen) {
  return chosen.param == "llama2" ? std::string("llama2") : std::string("mistral");
});

TEST(SentencePiece, RefusesOtherBytes) {
  EXPECT_THROW(read_sentencepiece("", "empty"), Error);
  EXPECT_THROW(read_sentencepiece("\x0a\x05hello", "short"), Error);
  EXPECT_FALSE(looks_like_sentencepiece(std::string(64, '\xFF')));
}

}  // namespace
}  // namespace sheaf

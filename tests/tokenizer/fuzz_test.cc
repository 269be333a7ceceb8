// Damaged tokenizer files and random text: only sheaf::Error may come out, and never a crash or a hang.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/tokenizer/sentencepiece_model.h"
#include "core/tokenizer/tiktoken.h"
#include "core/tokenizer/tokenizer_json.h"
#include "io/gguf_tokenizer.h"
#include "io/mapped_file.h"
#include "tests/io/fuzz.h"
#include "tests/tokenizer/tiny_gguf.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {
namespace {

std::string random_bytes(std::mt19937_64& random) {
  std::string text;
  for (size_t i = random() % 60; i > 0; --i) text.push_back(static_cast<char>(random() % (random() % 2 ? 256 : 128)));
  if (random() % 4 == 0) text += "<|end|> </s> \u2581 <0x41>";
  return text;
}

// Whatever could be loaded must also work.
void use(const Tokenizer& tokenizer, std::mt19937_64& random) {
  const std::string text = random_bytes(random);
  Tokens ids = ids_of(tokenizer, text, random() % 2 == 0);
  for (const TokenId id : ids) ASSERT_TRUE(id >= 0 && id < tokenizer.vocab_size());
  ids.push_back(static_cast<TokenId>(random()));
  tokenizer.decode(ids, random() % 2 == 0);
  tokenizer.find(text);
  tokenizer.is_special(static_cast<TokenId>(random()));
}

template <class Read>
void fuzz_reader(const std::string& sample, const std::vector<std::string_view>& words, Read read) {
  int64_t good = 0, refused = 0;
  fuzz([&](std::mt19937_64& random) {
    try {
      const auto tokenizer = read(mutate(sample, random, words));
      ++good;
      use(*tokenizer, random);
    } catch (const Error&) {
      ++refused;
    }
  });
  EXPECT_GT(good, 0);
  EXPECT_GT(refused, 0);
}

TEST(FuzzTokenizer, TokenizerJson) {
  auto file = tiny_json({{"a", "b"}, {"ab", "c"}});
  file["post_processor"] = {{"type", "TemplateProcessing"}, {"single", {{{"SpecialToken", {{"id", "<|end|>"}}}}}}};
  const std::vector<std::string_view> words = {"\"byte_fallback\":true,", "\"ignore_merges\":true,", "null", "-1",
                                               "99999999999999999999", "{", "[", "\"NFC\"", "\\ud800", "\"unk_token\":\"a\","};
  fuzz_reader(file.dump(), words, [](const std::string& text) { return read_tokenizer_json(text, text, "fuzz"); });
}

TEST(FuzzTokenizer, Tiktoken) {
  const std::string sample = "YQ== 0\nYg== 1\nYw== 2\nYmM= 3\nYWI= 4\nIA== 5\nIGE= 6\n";
  const std::vector<std::string_view> words = {" ", "\n", "=", "4000000", "-1", "YWJj 9\n"};
  fuzz_reader(sample, words, [](const std::string& text) {
    looks_like_tiktoken(text);
    return read_tiktoken(text, "fuzz");
  });
}

TEST(FuzzTokenizer, GgufByteLevel) {
  const TempFolder folder;
  fuzz_reader(tiny_gpt2_gguf(), {"\xFF\xFF\xFF\xFF", std::string_view("\0\0\0\0", 4)}, [&](const std::string& bytes) {
    return read_gguf_tokenizer(GgufFile::open(folder.write("fuzz.gguf", bytes)));
  });
}

TEST(FuzzTokenizer, GgufSentencePiece) {
  const TempFolder folder;
  fuzz_reader(tiny_llama_gguf(), {"\xFF\xFF\xFF\xFF", std::string_view("\0\0\0\0", 4)}, [&](const std::string& bytes) {
    return read_gguf_tokenizer(GgufFile::open(folder.write("fuzz.gguf", bytes)));
  });
}

TEST(FuzzTokenizer, RandomTextThroughTheDefaultModel) {
  const std::string path = "build/models/smollm2.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no default model; run tools/setup";
  const auto tokenizer = read_gguf_tokenizer(GgufFile::open(path));
  EXPECT_GT(fuzz([&](std::mt19937_64& random) { use(*tokenizer, random); }), 100);
}

}  // namespace
}  // namespace sheaf

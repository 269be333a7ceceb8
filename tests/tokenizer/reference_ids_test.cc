// Ids that the reference tokenizers give, written by tools/make_tokenizer_goldens.py, and the vocabulary
// checks that come with the GGUF files.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/model/model_files.h"
#include "tests/files.h"
#include "tests/skip.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {
namespace {

const std::string shared = "../shared/tokenizers/";
const std::map<std::string, std::string> files = {
    {"smollm2", "build/models/smollm2.gguf"},
    {"gpt-2", shared + "checks/ggml-vocab-gpt-2.gguf"},
    {"qwen2", shared + "checks/ggml-vocab-qwen2.gguf"},
    {"llama-spm", shared + "checks/ggml-vocab-llama-spm.gguf"},
    {"qwen3", shared + "qwen3/tokenizer.json"},
    {"olmo2", shared + "olmo2"},
    {"llama3", shared + "llama3/tokenizer.model"},
    {"llama2", shared + "llama2/tokenizer.model"},
    {"mistral-v1", shared + "mistral-v1"},
};

class ReferenceIds : public ::testing::TestWithParam<std::string> {};

TEST_P(ReferenceIds, EqualOnHostileText) {
  const std::string& path = files.at(GetParam());
  if (path == test::kDefaultModel)
    NEED_MODEL();
  else
    NEED_SHARED(path);
  const auto goldens = nlohmann::json::parse(read_text("tests/tokenizer/goldens/ids.json"));
  const auto& wanted = goldens.at(GetParam());
  std::vector<std::string> texts = goldens.at("text");
  for (const auto& text : goldens.at("special")) texts.push_back(text);
  const LoadedTokenizer loaded = load_tokenizer(path);
  ASSERT_GT(wanted.size(), 100u);
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(ids_of(*loaded.tokenizer, texts.at(i)), wanted[i].get<Tokens>()) << nlohmann::json(texts[i]);
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceIds,
                         ::testing::Values("smollm2", "gpt-2", "qwen2", "llama-spm", "qwen3", "olmo2",
                                           "llama3", "llama2", "mistral-v1"),
                         [](const auto& chosen) {
                           std::string name = chosen.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(O200k, EqualsTokenizersAndTiktoken) {
  const std::string folder = "tests/tokenizer/goldens/o200k/";
  const auto goldens = nlohmann::json::parse(read_text(folder + "ids.json"));
  const LoadedTokenizer loaded = load_tokenizer(folder + "tokenizer.json");
  const auto texts = goldens.at("text").get<std::vector<std::string>>();
  ASSERT_GT(texts.size(), 100u);
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(ids_of(*loaded.tokenizer, texts[i]), goldens.at("ids").at(i).get<Tokens>())
        << nlohmann::json(texts[i]);
  Tokens ends;
  for (const char* name : {"<|endoftext|>", "<|end|>", "<|return|>", "<|call|>"})
    ends.push_back(*loaded.tokenizer->find(name));
  for (const TokenId end : ends)
    EXPECT_NE(std::ranges::find(loaded.tokenizer->end_tokens, end), loaded.tokenizer->end_tokens.end());
}

class GgufChecks : public ::testing::TestWithParam<std::string> {};

TEST_P(GgufChecks, EqualTheExpectedIds) {
  const std::string path = shared + "checks/ggml-vocab-" + GetParam() + ".gguf";
  NEED_SHARED(path);
  const LoadedTokenizer loaded = load_tokenizer(path);
  const std::string inputs = read_text(path + ".inp");
  std::istringstream outputs(read_text(path + ".out"));
  constexpr std::string_view separator = "\n__ggml_vocab_test__\n";
  int compared = 0;
  for (size_t at = 0; at < inputs.size();) {
    const size_t end = std::min(inputs.find(separator, at), inputs.size());
    std::string line;
    ASSERT_TRUE(std::getline(outputs, line));
    std::istringstream numbers(line);
    Tokens wanted;
    for (TokenId id; numbers >> id;) wanted.push_back(id);
    const std::string text = inputs.substr(at, end - at);
    EXPECT_EQ(ids_of(*loaded.tokenizer, text, false), wanted) << text;
    ++compared;
    at = end + separator.size();
  }
  EXPECT_GT(compared, 40);
}

INSTANTIATE_TEST_SUITE_P(Files, GgufChecks, ::testing::Values("gpt-2", "llama-spm", "qwen2"),
                         [](const auto& chosen) {
                           std::string name = chosen.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(DefaultModel, FindsItsSpecialTokens) {
  NEED_MODEL();
  const LoadedTokenizer loaded = load_tokenizer(files.at("smollm2"));
  const Tokenizer& t = *loaded.tokenizer;
  EXPECT_EQ(t.vocab_size(), 49152);
  EXPECT_EQ(t.eos, 2);
  EXPECT_FALSE(t.starts_with_bos);
  EXPECT_EQ(t.end_tokens, (Tokens{2, 0}));
  EXPECT_EQ(t.find("<|im_start|>"), 1);
  EXPECT_TRUE(t.is_special(2));
  EXPECT_FALSE(t.is_special(504));
  EXPECT_EQ(t.decode(Tokens{504, 3575, 282, 4649, 314, 7042, 30, 2}), "The capital of France is Paris.");
  EXPECT_EQ(t.decode(Tokens{504, 2}, false), "The<|im_end|>");
  EXPECT_EQ(t.describe(), "byte-level BPE (smollm), 49152 tokens");
  // A byte without a token is dropped: 0x04 has none in this vocabulary.
  EXPECT_EQ(t.decode(ids_of(t, "a\x04z")), "az");
}

TEST(Llama3Ranks, HaveTheirSpecialTokens) {
  NEED_SHARED(files.at("llama3"));
  const LoadedTokenizer loaded = load_tokenizer(files.at("llama3"));
  const Tokenizer& t = *loaded.tokenizer;
  EXPECT_EQ(t.vocab_size(), 128256);
  EXPECT_EQ(t.bos, 128000);
  EXPECT_TRUE(t.starts_with_bos);
  EXPECT_EQ(t.find("<|eot_id|>"), 128009);
  EXPECT_EQ(t.find("<|python_tag|>"), 128010);
  EXPECT_EQ(t.end_tokens, (Tokens{128001, 128009, 128008}));
  EXPECT_EQ(t.decode(Tokens{128255}, false), "<|reserved_special_token_250|>");
}

}  // namespace
}  // namespace sheaf

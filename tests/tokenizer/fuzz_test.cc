// Damaged tokenizer files and random text: only sheaf::Error may come out, and never a crash or a hang.
#include "tests/fuzz.h"

#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/tokenizer/chat_template.h"
#include "core/tokenizer/read_tokenizer.h"
#include "io/base/mapped_file.h"
#include "io/model/gguf.h"
#include "io/model/model_files.h"
#include "tests/skip.h"
#include "tests/tokenizer/tiny_gguf.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {
namespace {

std::string random_bytes(std::mt19937_64& random) {
  std::string text;
  for (size_t i = random() % 60; i > 0; --i)
    text.push_back(static_cast<char>(random() % (random() % 2 ? 256 : 128)));
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

TEST(FuzzTokenizer, TokenizerJsonIsReadOrRefused) {
  auto file = tiny_json({{"a", "b"}, {"ab", "c"}});
  file["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", {{{"SpecialToken", {{"id", "<|end|>"}}}}}}};
  const std::vector<std::string_view> words = {"\"byte_fallback\":true,",
                                               "\"ignore_merges\":true,",
                                               "null",
                                               "-1",
                                               "99999999999999999999",
                                               "{",
                                               "[",
                                               "\"NFC\"",
                                               "\\ud800",
                                               "\"unk_token\":\"a\","};
  fuzz_reader(file.dump(), words,
              [](const std::string& text) { return read_tokenizer_json(text, text, "fuzz"); });
}

// The files that Hugging Face puts beside a tokenizer.
TEST(FuzzTokenizer, FilesBesideItAreReadOrRefused) {
  const TempFolder folder;
  const std::string config =
      R"({"bos_token": "<|end|>", "eos_token": {"content": "<|end|>"}, "add_bos_token": true, "chat_template": [)"
      R"({"name": "default", "template": "{% for m in messages %}<|im_start|>{{ m.role }}{% endfor %}"}]})";
  const std::string generation = R"({"eos_token_id": [258, 1, -1, 99999999999], "pad_token_id": 0})";
  const std::string chat = "{% for message in messages %}{{'<|im_start|>' + message['role']}}{% endfor %}";
  const std::vector<std::pair<std::string, std::string>> files = {{"tokenizer_config.json", config},
                                                                  {"generation_config.json", generation},
                                                                  {"chat_template.jinja", chat}};
  folder.write("tokenizer.json", tiny_json({{"a", "b"}}).dump());
  const auto load = [&] {
    const LoadedTokenizer loaded = load_tokenizer(folder.path());
    for (const TokenId id : loaded.tokenizer->end_tokens)
      EXPECT_TRUE(id >= 0 && id < loaded.tokenizer->vocab_size());
    choose_chat_template(loaded.chat_template, *loaded.tokenizer);
  };
  for (const auto& [name, text] : files) folder.write(name, text);
  load();
  int64_t good = 0, refused = 0;
  const auto try_file = [&](const std::string& name, const std::string& text, const std::string& changed) {
    folder.write(name, changed);
    try {
      load();
      ++good;
    } catch (const Error& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
    folder.write(name, text);
  };
  for (const auto& [name, text] : files)
    for (const std::string& found : past_findings(name)) try_file(name, text, found);
  fuzz([&](std::mt19937_64& random) {
    const auto& [name, text] = files[random() % files.size()];
    try_file(name, text, mutate(text, random, kJsonWords));
  });
  EXPECT_GT(good, 0);
  EXPECT_GT(refused, 0);
}

TEST(FuzzTokenizer, TiktokenFilesAreReadOrRefused) {
  const std::string sample = "YQ== 0\nYg== 1\nYw== 2\nYmM= 3\nYWI= 4\nIA== 5\nIGE= 6\n";
  const std::vector<std::string_view> words = {" ", "\n", "=", "4000000", "-1", "YWJj 9\n"};
  fuzz_reader(sample, words, [](const std::string& text) {
    looks_like_tiktoken(text);
    return read_tiktoken(text, "fuzz");
  });
}

TEST(FuzzTokenizer, ByteLevelGgufFilesAreReadOrRefused) {
  const TempFolder folder;
  fuzz_reader(tiny_gpt2_gguf(), {"\xFF\xFF\xFF\xFF", std::string_view("\0\0\0\0", 4)},
              [&](const std::string& bytes) {
                return read_gguf_tokenizer(GgufFile::open(folder.write("fuzz.gguf", bytes)));
              });
}

TEST(FuzzTokenizer, SentencePieceGgufFilesAreReadOrRefused) {
  const TempFolder folder;
  fuzz_reader(tiny_llama_gguf(), {"\xFF\xFF\xFF\xFF", std::string_view("\0\0\0\0", 4)},
              [&](const std::string& bytes) {
                return read_gguf_tokenizer(GgufFile::open(folder.write("fuzz.gguf", bytes)));
              });
}

// A SentencePiece model by hand: pieces {piece, score, type}, the model type, and a normalizer that keeps
// spaces.
std::string tiny_sentencepiece(char model_type) {
  const auto field = [](char tag, const std::string& body) {
    return std::string(1, tag) + static_cast<char>(body.size()) + body;
  };
  std::string out;
  float score = 0;
  const auto piece = [&](const std::string& text, char type) {
    std::string bytes(4, '\0');
    std::memcpy(bytes.data(), &score, 4);
    score -= 1;
    out += field('\x0a', field('\x0a', text) + '\x15' + bytes + '\x18' + type);
  };
  piece("<unk>", 2);
  piece("<s>", 3);
  piece("</s>", 3);
  for (const char* text : {"\u2581", "a", "b", "ab", "\u2581ab", "\u2581\u2581", "\u00e9"}) piece(text, 1);
  out += field('\x12', std::string("\x18") + model_type);
  return out + field('\x1a', std::string("\x18\x01\x20\0", 4));
}

TEST(FuzzTokenizer, SentencePieceFilesAreReadOrRefused) {
  for (const char model_type : {'\1', '\2'})
    fuzz_reader(tiny_sentencepiece(model_type), {"\xFF\xFF\xFF\xFF", "\x18\x04", "\x18\x05"},
                [](const std::string& bytes) { return read_sentencepiece(bytes, "fuzz"); });
}

TEST(FuzzTokenizer, RandomTextComesBackThroughTheDefaultModel) {
  NEED_MODEL();
  const auto tokenizer = read_gguf_tokenizer(GgufFile::open(test::kDefaultModel));
  fuzz([&](std::mt19937_64& random) { use(*tokenizer, random); });
}

}  // namespace
}  // namespace sheaf

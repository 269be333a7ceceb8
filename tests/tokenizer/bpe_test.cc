#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "core/tokenizer/char_bpe.h"
#include "core/tokenizer/merges.h"
#include "core/tokenizer/read_tokenizer.h"
#include "io/model/model_files.h"
#include "tests/skip.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {
namespace {

std::string refusal(const nlohmann::json& file) {
  try {
    read_tokenizer_json(file.dump(), "", "tiny.json");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// The definition: merge the lowest rank, the leftmost of equals, until nothing merges.
Tokens merge_plainly(const Merges& merges, Tokens symbols) {
  while (true) {
    size_t best = symbols.size();
    Merges::Merge chosen{Merges::none, -1};
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto m = merges.find(symbols[i], symbols[i + 1]);
      if (m.rank < chosen.rank) {
        chosen = m;
        best = i;
      }
    }
    if (best == symbols.size()) return symbols;
    symbols[best] = chosen.merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Merges, ScanAndHeapFollowTheDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Merges merges;
    const int letters = 2 + static_cast<int>(random() % 3);
    int next = letters;
    for (int i = 0; i < 40; ++i) {
      const auto left = static_cast<TokenId>(random() % static_cast<unsigned>(next));
      const auto right = static_cast<TokenId>(random() % static_cast<unsigned>(next));
      if (merges.find(left, right).rank == Merges::none)
        merges.add(left, right, static_cast<uint32_t>(random() % 30), next++);
    }
    Tokens symbols(random() % 150);
    for (TokenId& s : symbols) s = static_cast<TokenId>(random() % static_cast<unsigned>(letters));
    Tokens merged = symbols;
    MergeScratch scratch;
    merge_all(merges, merged, scratch);
    ASSERT_EQ(merged, merge_plainly(merges, symbols)) << round;
  }
}

TEST(ByteBpe, MergesByRank) {
  const auto t =
      read_tokenizer_json(tiny_json({{"b", "c"}, {"a", "b"}, {"a", "bc"}, {" ", "abc"}}).dump(), "", "tiny");
  EXPECT_EQ(ids_of(*t, "abc abc"), (Tokens{258, 259}));
  EXPECT_EQ(ids_of(*t, "ab"), (Tokens{257}));
  EXPECT_EQ(t->find(" abc"), 259);
  EXPECT_EQ(t->find("zz"), std::nullopt);
}

TEST(ByteBpe, AnyValidTextComesBack) {
  const auto t = read_tokenizer_json(tiny_json({{"a", "b"}, {"\xC3", "\xA9"}}).dump(), "", "tiny");
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t i = random() % 40; i > 0; --i) {
      auto c = static_cast<uint32_t>(random() % 3 == 0 ? random() % 0x110000 : random() % 0x80);
      if (c >= 0xD800 && c < 0xE000) c = 0xE9;
      append_utf8(c, text);
    }
    ASSERT_EQ(t->decode(ids_of(*t, text, false)), text);
  }
}

TEST(ByteBpe, InvalidBytesAreReplaced) {
  const auto t = read_tokenizer_json(tiny_json({}).dump(), "", "tiny");
  EXPECT_EQ(t->decode(ids_of(*t, "a\xF0\x9Fz\xFF")), "a\uFFFDz\uFFFD");
}

TEST(ByteBpe, WholeWordsGoFirstWhereTheFileSaysSo) {
  auto file = tiny_json({{"b", "c"}, {"a", "b"}});
  file["model"]["vocab"]["abc"] = 300;
  EXPECT_EQ(ids_of(*read_tokenizer_json(file.dump(), "", "tiny"), "abc"), (Tokens{'a', 256}));
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(ids_of(*read_tokenizer_json(file.dump(), "", "tiny"), "abc"), (Tokens{300}));
}

TEST(ByteBpe, AByteWithoutATokenIsUnknownOrDropped) {
  auto file = tiny_json({{"a", "b"}});
  file["model"]["vocab"].erase("x");
  EXPECT_EQ(ids_of(*read_tokenizer_json(file.dump(), "", "tiny"), "axxb"), (Tokens{256}));
  file["model"]["unk_token"] = "?";
  EXPECT_EQ(ids_of(*read_tokenizer_json(file.dump(), "", "tiny"), "axxb"), (Tokens{'a', '?', '?', 'b'}));
  file["model"]["fuse_unk"] = true;
  EXPECT_EQ(ids_of(*read_tokenizer_json(file.dump(), "", "tiny"), "axxb"), (Tokens{'a', '?', 'b'}));
}

// Pairs that a fixed factor would put on a few slots: each would be looked for behind all others.
TEST(Merges, AnyMergesTakeLinearTime) {
  Merges merges;
  constexpr size_t kPairs = 100'000, kSlots = size_t{1} << 18;
  merges.reserve(kPairs);
  std::vector<std::pair<TokenId, TokenId>> pairs;
  for (uint64_t left = 0; pairs.size() < kPairs; ++left)
    for (uint64_t right = 0; right < 1'000'000 && pairs.size() < kPairs; ++right)
      if (((left << 32 | right) * 0x9E3779B97F4A7C15u >> 32 & (kSlots - 1)) < 256)
        pairs.emplace_back(static_cast<TokenId>(left), static_cast<TokenId>(right));
  for (size_t i = 0; i < kPairs; ++i)
    merges.add(pairs[i].first, pairs[i].second, static_cast<uint32_t>(i), 1);
  for (int round = 0; round < 10; ++round)
    for (size_t i = 0; i < kPairs; ++i) ASSERT_EQ(merges.find(pairs[i].first, pairs[i].second).rank, i);
}

// The same of tokens that only differ in their last bytes.
TEST(Vocabulary, FindsEveryTokenOfALargeVocabulary) {
  Vocabulary vocabulary;
  constexpr int kTokens = 60'000;
  vocabulary.resize(kTokens);
  const auto bytes = [](int i) {
    return "abcdef" + std::string{static_cast<char>(i), static_cast<char>(i >> 8)};
  };
  for (int i = 0; i < kTokens; ++i) vocabulary.set(i, bytes(i), true);
  for (int i = 0; i < kTokens; ++i) ASSERT_EQ(vocabulary.find_id(bytes(i)), i);
}

TEST(AddedTokens, LongestFirstAndStripped) {
  auto file = tiny_json({});
  file["added_tokens"] = {
      {{"id", 256}, {"content", "<a>"}, {"special", true}},
      {{"id", 257}, {"content", "<a><b>"}, {"special", false}},
      {{"id", 258}, {"content", "<s>"}, {"special", true}, {"lstrip", true}, {"rstrip", true}}};
  const auto t = read_tokenizer_json(file.dump(), "", "tiny");
  EXPECT_EQ(ids_of(*t, "<a><b><a>"), (Tokens{257, 256}));
  EXPECT_EQ(ids_of(*t, "x \n<s> \t y"), (Tokens{'x', 258, 'y'}));
  EXPECT_EQ(ids_of(*t, "<s> <s>"), (Tokens{258, 258}));
  // Without parsing, special tokens are plain text, tokens that are not special still count.
  EXPECT_EQ(ids_of(*t, "<a><b>", false), (Tokens{257}));
  EXPECT_EQ(ids_of(*t, "<a>", false), (Tokens{'<', 'a', '>'}));
}

TEST(TokenizerJson, RefusesWhatWouldChangeIds) {
  auto file = tiny_json({});
  file["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "\\p{Han}+"}}}, {"behavior", "Isolated"}};
  EXPECT_NE(refusal(file).find("\\p{Han}+"), std::string::npos);
  EXPECT_NE(refusal(file).find("GPT-2"), std::string::npos);
  file["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  EXPECT_NE(refusal(file).find("BertPreTokenizer"), std::string::npos);
  file = tiny_json({});
  file["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_NE(refusal(file).find("Lowercase"), std::string::npos);
  file = tiny_json({});
  file["model"]["type"] = "Unigram";
  EXPECT_NE(refusal(file).find("Unigram"), std::string::npos);
  file = tiny_json({});
  file["model"]["merges"].push_back({"a", "b"});
  EXPECT_NE(refusal(file).find("merge 0"), std::string::npos);
  file = tiny_json({});
  file["model"]["vocab"]["far"] = 3'999'999;
  EXPECT_NE(refusal(file).find("3999999"), std::string::npos);
  EXPECT_THROW(read_tokenizer_json(std::string(1000000, '['), "", "deep"), Error);
  EXPECT_THROW(read_tokenizer_json("[]", "", "list"), Error);
  EXPECT_THROW(read_tokenizer_json("{}", "", "empty"), Error);
}

TEST(CharBpe, HandlesSpacesAndFallsBackToBytes) {
  nlohmann::json vocab = {{"<unk>", 0}, {"\u2581", 1},   {"a", 2},           {"b", 3},
                          {"ab", 4},    {"\u2581ab", 5}, {"\u2581\u2581", 6}};
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = 7 + byte;
  nlohmann::json file = {{"normalizer",
                          {{"type", "Sequence"},
                           {"normalizers",
                            {{{"type", "Prepend"}, {"prepend", "\u2581"}},
                             {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}}},
                         {"model",
                          {{"type", "BPE"},
                           {"unk_token", "<unk>"},
                           {"byte_fallback", true},
                           {"fuse_unk", true},
                           {"vocab", vocab},
                           {"merges", {"a b", "\u2581 ab", "\u2581 \u2581"}}}}};
  const auto t = read_tokenizer_json(file.dump(), "", "tiny");
  EXPECT_EQ(ids_of(*t, "ab ab"), (Tokens{5, 5}));
  EXPECT_EQ(ids_of(*t, " ab"), (Tokens{1, 5}));
  EXPECT_EQ(ids_of(*t, "\n"), (Tokens{1, 7 + '\n'}));
  EXPECT_EQ(ids_of(*t, ""), Tokens{});
  EXPECT_EQ(t->decode(ids_of(*t, "ab \u00e9\n")), "ab \u00e9\n");
  EXPECT_EQ(t->find("\n"), 7 + '\n');
  Tokens part;
  t->encode_pieces(std::vector<TextPiece>{{"ab ab", false}}, part, true);
  EXPECT_EQ(part, (Tokens{4, 5}));
}

TEST(Tiktoken, RanksDecide) {
  // "a", "b", "c", "bc", "ab": bc has the lower rank.
  const auto t = read_tiktoken("YQ== 0\nYg== 1\nYw== 2\nYmM= 3\nYWI= 4\n", "ranks");
  EXPECT_EQ(ids_of(*t, "abc"), (Tokens{0, 3}));
  EXPECT_EQ(ids_of(*t, "ab"), (Tokens{4}));
  EXPECT_THROW(read_tiktoken("YQ== 0\nnot a line\n", "ranks"), Error);
  EXPECT_THROW(read_tiktoken("YQ== 0\nYg== 0\n", "ranks"), Error);
  EXPECT_THROW(read_tiktoken("YQ== 3000000\n", "ranks"), Error);
  EXPECT_TRUE(looks_like_tiktoken("YQ== 0\n"));
  EXPECT_FALSE(looks_like_tiktoken("{\"a\": 1}"));
}

TEST(ByteBpe, ManyThreadsGetTheSameIds) {
  const auto t = read_tokenizer_json(tiny_json({{"a", "b"}, {" ", "ab"}}).dump(), "", "tiny");
  std::string text;
  for (int i = 0; i < 5000; ++i) text += fmt::format(" ab{} ba", i);
  const Tokens wanted = ids_of(*t, text);
  std::vector<Tokens> got(4);
  {
    std::vector<std::jthread> threads;
    for (Tokens& ids : got) threads.emplace_back([&] { ids = ids_of(*t, text); });
  }
  for (const Tokens& ids : got) EXPECT_EQ(ids, wanted);
}

TEST(DefaultModel, AMegabyteWithoutASpaceTakesLinearTime) {
  NEED_MODEL();
  const LoadedTokenizer loaded = load_tokenizer(test::kDefaultModel);
  std::string text;
  for (uint32_t i = 0; i < 1'000'000; ++i) text.push_back(static_cast<char>('a' + i * 7919 % 26));
  // A quadratic merge takes so many minutes that ctest's time limit ends it.
  EXPECT_EQ(loaded.tokenizer->decode(ids_of(*loaded.tokenizer, text)), text);
}

}  // namespace
}  // namespace sheaf

// A compressed file that is cut or corrupt gives every row before the damage, one reject, and no trouble to
// its neighbours.
#include <gtest/gtest.h>
#include <random>

#include "io/base/line_reader.h"
#include "io/corpus/describe_corpus.h"
#include "tests/files.h"
#include "tests/io/corpus_records.h"
#include "tests/packed_text.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::pack;

/// Lines that do not compress to nothing.
std::string lines(int first, int count) {
  std::mt19937 random(static_cast<uint32_t>(first));
  std::string text;
  for (int i = first; i < first + count; ++i) {
    std::string words;
    for (int w = 0; w < 12; ++w) words += std::to_string(random()) + " ";
    text += json{{"sku", i}, {"category", "Tea"}, {"title", "t"}, {"text", words}}.dump() + "\n";
  }
  return text;
}

/// The rows of folder/a.jsonl.KIND, which holds `bytes`, and of the three rows in b after it.
CorpusRecords read_beside_another(const std::string& kind, const std::string& bytes) {
  TempFolder folder;
  folder.write("a.jsonl." + kind, bytes);
  folder.write("b.jsonl." + kind, pack(lines(100000, 3), kind));
  const Job job = extract_job(folder.path());
  CorpusRecords rows = read_all(job, &kSchema);
  const auto corpus = open_corpus(job, &kSchema);
  EXPECT_EQ(corpus->count_records(), rows.count);
  corpus->skip_to(rows.count - 3);
  EXPECT_EQ(read_all(*corpus).records.size(), 3u) << "numbers hold after a skip";
  return rows;
}

class Damaged : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Corpus, Damaged, testing::Values("gz", "zst"),
                         [](const auto& packing) { return packing.param; });

TEST_P(Damaged, ACutFileGivesWhatCameBefore) {
  const std::string whole = pack(lines(0, 3000), GetParam());
  const CorpusRecords all = read_beside_another(GetParam(), whole);
  ASSERT_EQ(all.records.size(), 3003u);
  ASSERT_TRUE(all.rejects.empty());
  size_t before = 0;
  for (const double share : {0.0, 0.3, 0.6, 0.9, 1.0}) {
    const auto cut = share == 1.0 ? whole.size() - 1  // in the trailer
                                  : static_cast<size_t>(share * static_cast<double>(whole.size()));
    const CorpusRecords rows = read_beside_another(GetParam(), whole.substr(0, cut));
    ASSERT_EQ(rows.rejects.size(), 1u) << share;
    EXPECT_EQ(rows.rejects[0].reason, "the rest of the file cannot be read: it is cut off");
    const size_t good = rows.records.size() - 3;
    EXPECT_EQ(rows.rejects[0].place.row, static_cast<int64_t>(good) + 1);
    EXPECT_TRUE(rows.rejects[0].place.file.ends_with("a.jsonl." + GetParam()));
    for (size_t i = 0; i < good; ++i) ASSERT_EQ(rows.records[i].document, all.records[i].document);
    // A block of zstd is whole or not there at all: 128 kB, some 700 of these lines.
    EXPECT_GE(static_cast<double>(good) + (GetParam() == "gz" ? 30 : 1000), share * 3000) << share;
    EXPECT_GE(good, before);
    before = good;
  }
  EXPECT_GE(before, GetParam() == "gz" ? 3000u : 2500u);
}

TEST_P(Damaged, ACorruptFileGivesWhatCameBefore) {
  std::string bytes = pack(lines(0, 3000), GetParam());
  // Long enough to hit the head of a block: literals of zstd that were changed within one go unnoticed.
  const std::string wrecked(80000, '\x55');
  bytes.replace(bytes.size() / 3, wrecked.size(), wrecked);
  const CorpusRecords rows = read_beside_another(GetParam(), bytes);
  ASSERT_GE(rows.rejects.size(), 1u);
  const Reject& last = rows.rejects.back();
  EXPECT_TRUE(last.reason.starts_with("the rest of the file cannot be read: ")) << last.reason;
  EXPECT_GT(last.place.row, 500);
  EXPECT_LT(last.place.row, 3000);
  EXPECT_EQ(rows.records.back().id, json(100002));
  for (size_t i = 0; i < 500; ++i) ASSERT_EQ(rows.records[i].id, json(i));
}

TEST_P(Damaged, PartsOneAfterAnotherAreOneFile) {
  const std::string one = pack(lines(0, 40), GetParam()), two = pack(lines(40, 40), GetParam());
  const CorpusRecords rows = read_beside_another(GetParam(), one + two);
  EXPECT_EQ(rows.records.size(), 83u);
  EXPECT_TRUE(rows.rejects.empty());
  const CorpusRecords padded = read_beside_another(GetParam(), one + two + std::string(100000, '\0'));
  EXPECT_TRUE(padded.rejects.empty());
  const CorpusRecords cut = read_beside_another(GetParam(), one + two.substr(0, 7));
  EXPECT_EQ(cut.records.size(), 43u);
  ASSERT_EQ(cut.rejects.size(), 1u);
  EXPECT_EQ(cut.rejects[0].place.row, 41);
  const CorpusRecords stranger = read_beside_another(GetParam(), one + "and then some text");
  EXPECT_EQ(stranger.records.size(), 43u);
  ASSERT_EQ(stranger.rejects.size(), 1u);
}

TEST_P(Damaged, WholeFilesAreKnownByTheirFirstBytes) {
  TempFolder folder;
  const std::string path = folder.write("plain.jsonl", pack(lines(0, 5), GetParam()));
  EXPECT_EQ(read_all(extract_job(path), &kSchema).records.size(), 5u);
  const std::string text = folder.write("text.jsonl." + GetParam(), lines(0, 5));
  const CorpusRecords rows = read_all(extract_job(text), &kSchema);
  EXPECT_TRUE(rows.records.empty());
  ASSERT_EQ(rows.rejects.size(), 1u);
  EXPECT_EQ(rows.rejects[0].place.row, 1);
}

TEST_P(Damaged, DescribeNamesTheDamage) {
  TempFolder folder;
  const std::string whole = pack(lines(0, 3000), GetParam());
  const std::string path = folder.write("a.jsonl." + GetParam(), whole.substr(0, whole.size() - 3));
  const auto about = describe_corpus(path);
  EXPECT_EQ(about["damage"], fmt::format("{}:{}: it is cut off", path, about["records"].get<int>() + 1));
  EXPECT_FALSE(describe_corpus(folder.write("b.jsonl." + GetParam(), whole)).contains("damage"));
}

/// Output of every size that a decompressor can be asked for comes out the same.
TEST_P(Damaged, LinesOfEveryLengthSurvivePacking) {
  TempFolder folder;
  std::string text;
  for (size_t i = 0; i < 200; ++i)
    text += std::string((i * 7919) % 9000, static_cast<char>('a' + i % 26)) + "\n";
  LineReader reader(folder.write("l.txt." + GetParam(), pack(text, GetParam())));
  std::string read;
  while (const auto line = reader.next()) read.append(line->text).append("\n");
  EXPECT_EQ(read, text);
}

}  // namespace
}  // namespace sheaf

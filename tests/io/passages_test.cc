// Passages and their index: what a search finds, when the index is made again, and what damage does.
#include "io/passages/passages.h"

#include <cmath>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "core/task/relevance.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/fuzz.h"
#include "tests/io/corpus_records.h"
#include "tests/io/parquet_sample.h"

namespace sheaf {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

std::string lines_of(const Texts& texts) {
  std::string lines;
  for (size_t i = 0; i < texts.size(); ++i)
    lines += json{{"id", "p" + std::to_string(i)}, {"text", texts[i]}}.dump() + "\n";
  return lines;
}

struct Opened {
  std::shared_ptr<const PassageIndex> index;
  Texts notices;
};

Opened open(const std::string& corpus, const std::string& index = {}) {
  Opened opened;
  opened.index = open_passages({corpus, index, "job.yaml:2: input.corpus: "}, opened.notices);
  return opened;
}

/// Some words are in most texts, most are in few.
Texts random_texts(std::mt19937_64& random, size_t count, size_t vocabulary) {
  Texts texts;
  for (size_t i = 0; i < count; ++i) {
    std::string text = i % 3 == 0 ? "The" : "A";
    for (size_t words = 1 + random() % 30; words > 0; --words) {
      const double share = std::pow(static_cast<double>(random() % 1000) / 1000, 3);
      text += " w" + std::to_string(static_cast<size_t>(share * static_cast<double>(vocabulary)));
    }
    texts.push_back(text);
  }
  return texts;
}

/// BM25 as its definition has it, text by text.
std::vector<double> plain_bm25(const Texts& texts, const std::string& question) {
  const auto split = [](const std::string& text) {
    Texts words;
    std::istringstream stream(text);
    for (std::string word; stream >> word; words.push_back(word))
      for (char& c : word) c = static_cast<char>(std::tolower(c));
    return words;
  };
  std::vector<Texts> words;
  double all = 0;
  for (const std::string& text : texts) {
    words.push_back(split(text));
    all += static_cast<double>(words.back().size());
  }
  const auto n = static_cast<double>(texts.size());
  const Texts asked = split(question);
  std::vector<double> scores(texts.size(), 0);
  for (const std::string& word : std::set(asked.begin(), asked.end())) {
    double holding = 0;
    for (const Texts& each : words) holding += std::ranges::count(each, word) > 0;
    const double idf = std::log(1 + (n - holding + 0.5) / (holding + 0.5));
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto tf = static_cast<double>(std::ranges::count(words[i], word));
      scores[i] +=
          idf * tf * 2.5 / (tf + 1.5 * (0.25 + 0.75 * static_cast<double>(words[i].size()) * n / all));
    }
  }
  return scores;
}

TEST(Passages, ASearchFindsWhatBruteForceFinds) {
  std::mt19937_64 random(7);
  for (const size_t count : {1u, 5u, 127u, 128u, 129u, 3000u}) {
    TempFolder folder(quick_place());
    const Texts texts = random_texts(random, count, 400);
    const auto index = open(folder.write("c.jsonl", lines_of(texts))).index;
    ASSERT_EQ(index->passages(), count);
    for (int round = 0; round < 30; ++round) {
      std::string question = round % 2 ? "THE a" : "nothing";
      for (size_t words = random() % 8; words > 0; --words) question += " w" + std::to_string(random() % 400);
      const std::vector<double> right = plain_bm25(texts, question);
      std::vector<double> best = right;
      std::ranges::sort(best, std::greater<>());
      for (const size_t most : {size_t{1}, size_t{10}, size_t{5000}}) {
        const auto found = index->search(question, most);
        const auto matching =
            static_cast<size_t>(std::ranges::count_if(right, [](double score) { return score > 0; }));
        ASSERT_EQ(found.size(), std::min(most, matching)) << question;
        std::set<uint32_t> different;
        for (size_t i = 0; i < found.size(); ++i) {
          EXPECT_NEAR(found[i].score, best[i], 1e-9) << question;
          EXPECT_NEAR(found[i].score, right[found[i].passage], 1e-9) << question;
          different.insert(found[i].passage);
          const bool tie = i > 0 && found[i].score == found[i - 1].score;
          EXPECT_TRUE(!tie || found[i - 1].passage < found[i].passage) << question;
        }
        EXPECT_EQ(different.size(), found.size());
      }
      std::vector<uint32_t> some;
      for (uint32_t i = 0; i < count; i += 1 + static_cast<uint32_t>(random() % 40)) some.push_back(i);
      const std::vector<double> scores = index->scores(question, some),
                                lexical = LexicalScorer(texts).scores(question);
      for (size_t i = 0; i < some.size(); ++i) {
        EXPECT_NEAR(scores[i], right[some[i]], 1e-9);
        EXPECT_NEAR(scores[i], lexical[some[i]], 1e-9);
      }
    }
  }
}

TEST(Passages, AreReadWithTitlesAndIds) {
  TempFolder folder;
  const std::string lines = folder.write(
      "c.jsonl",
      "{\"_id\": \"a\", \"title\": \"Mill\", \"text\": \"It is in Arn.\", \"more\": [1]}\n"
      "{\"_id\": 7, \"text\": \"Bread \\u00e9\"}\nno json\n{\"text\": \" \"}\n{\"text\": \"Third\"}\n"
      "{\"text\": 4}\n");
  const Opened opened = open(lines);
  ASSERT_EQ(opened.index->passages(), 3u);
  const Passage mill = opened.index->passage(0);
  EXPECT_EQ(mill.id, "a");
  EXPECT_EQ(mill.document(), "Mill\nIt is in Arn.");
  EXPECT_EQ(opened.index->passage(1).id, 7);
  EXPECT_EQ(opened.index->passage(1).document(), "Bread \xC3\xA9");
  EXPECT_EQ(opened.index->passage(2).id, 5);  // its row
  ASSERT_EQ(opened.notices.size(), 2u);
  EXPECT_NE(opened.notices[0].find("made the index " + lines + ".bm25 of 3 passages"), std::string::npos);
  EXPECT_EQ(opened.notices[1].substr(0, opened.notices[1].find("; the first: ") + 13 + lines.size() + 3),
            lines + ": 3 passages cannot be used and left out; the first: " + lines + ":3:");
  EXPECT_EQ(open(lines).notices, Texts{opened.notices[1]}) << "told by every run";

  const std::string table = folder.path("c.parquet");
  write_parquet(table, {{"pid", "int64", {1, 2}},
                        {"title_text", "string", {"Mill", nullptr}},
                        {"passage_text", "string", {"It is in Arn.", "Bread"}}});
  const auto index = open(table).index;
  EXPECT_EQ(index->passage(0).document(), mill.document());
  EXPECT_EQ(index->passage(1).id, 2);
  EXPECT_EQ(index->search("mill?", 5).at(0).passage, 0u) << "titles are searched too";
}

TEST(Passages, WhatCannotBeIndexedIsRefused) {
  TempFolder folder;
  expect_refusal(
      [&] { open(folder.write("none.jsonl", "{\"text\": 1}\n")); },
      {"none.jsonl holds no passage that can be read: ", "none.jsonl:1: its text is a number, not text"});
  expect_refusal([&] { open(folder.write("c.csv", "id,text\n")); },
                 {"input.corpus: ", "JSON lines, Parquet"});
  expect_refusal([&] { open(folder.path("absent.jsonl")); }, {"absent.jsonl"});
  expect_refusal([&] { open(folder.path("*.jsonl")); }, {"set input.corpus_index"});
  const std::string table = folder.path("c.parquet");
  write_parquet(table, {{"body", "string", {"a"}}});
  expect_refusal([&] { open(table); }, {"c.parquet: the file has no column \"text\""});
  const std::string good = folder.write("good.jsonl", "{\"text\": \"a\"}\n");
  expect_refusal([&] { open(good, folder.path("absent/index")); },
                 {"absent/index.part: the index of the passages cannot be written", "input.corpus_index"});
  EXPECT_FALSE(std::filesystem::exists(folder.path("none.jsonl.bm25.part")));
}

TEST(Passages, TheIndexIsMadeAgainWhereItDoesNotFit) {
  TempFolder folder;
  const std::string corpus = folder.write("c.jsonl", "{\"text\": \"mill\"}\n"), path = corpus + ".bm25";
  EXPECT_EQ(open(corpus).notices.size(), 1u);
  const std::string first = read_text(path);
  EXPECT_EQ(open(corpus).notices, Texts{});
  folder.write("c.jsonl", "{\"text\": \"mill\"}\n{\"text\": \"town\"}\n");
  const Opened changed = open(corpus);
  EXPECT_EQ(changed.index->passages(), 2u);
  EXPECT_NE(changed.notices.at(0).find("because the passages have changed"), std::string::npos);
  const std::string whole = read_text(path);
  for (const std::string& damaged :
       {std::string(), whole.substr(0, 100), whole.substr(0, whole.size() - 8), whole + "x"}) {
    folder.write("c.jsonl.bm25", damaged);
    const Opened again = open(corpus);
    EXPECT_NE(again.notices.at(0).find("the old one is of no use"), std::string::npos);
    EXPECT_EQ(read_text(path), whole) << "equal passages give equal bytes";
    EXPECT_EQ(again.index->search("town", 3).size(), 1u);
  }
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST(Passages, NoOtherFileIsWrittenOver) {
  TempFolder folder(quick_place());
  const std::string corpus = folder.write("c.jsonl", lines_of({"mill in Arn", "town hall"}));
  const std::string mine = folder.write("mine.jsonl", "{\"text\": \"My notes.\"}\n");
  const std::string before = read_text(mine);
  std::vector<std::string> notices;
  for (const std::string& index : {mine, corpus})
    expect_refusal(
        [&] {
          open_passages({corpus, index, ""}, notices);
        },
        {index, "does not write over it", "input.corpus_index"});
  EXPECT_EQ(read_text(mine), before);
}

TEST(Passages, AnIdThatAnEarlierPassageHasIsLeftOutWithBothPlaces) {
  const TempFolder folder;
  folder.write("c/1.jsonl", "{\"id\": 7, \"text\": \"oak\"}\n\n{\"id\": \"7\", \"text\": \"ash\"}\n");
  folder.write("c/2.jsonl", "{\"id\": 7, \"text\": \"elm\"}\n{\"id\": 8, \"text\": \"fir\"}\n");
  const Opened opened = open(folder.path("c"));
  EXPECT_EQ(opened.index->passages(), 3u);
  EXPECT_TRUE(opened.index->search("elm", 1).empty());
  ASSERT_EQ(opened.notices.size(), 2u);
  EXPECT_NE(
      opened.notices[1].find("1 passage cannot be used and left out; the first: " + folder.path("c/2.jsonl") +
                             ":1: its id 7 is that of " + folder.path("c/1.jsonl") + ":1 too"),
      std::string::npos)
      << opened.notices[1];
}

TEST(Passages, AnIndexWhoseTextIsDamagedIsMadeAgainWhileItIsUsed) {
  const TempFolder folder;
  const std::string corpus = folder.write("c.jsonl", lines_of({"oak ash", "elm fir"}));
  const auto text_of = [](Passages& passages) {
    std::string text;
    int calls = 0;
    passages.with_index([&](const PassageIndex& index) {
      ++calls;
      text = index.passage(index.search("elm", 1).at(0).passage).text;
    });
    return std::pair(text, calls);
  };
  Texts notices;
  Passages sound({corpus, {}, ""}, notices);
  EXPECT_EQ(text_of(sound), std::pair(std::string("elm fir"), 1));
  EXPECT_EQ(sound.notice(), "");
  std::string bytes = read_text(corpus + ".bm25");
  bytes[bytes.find("elm fir") + 1] ^= 0x20;
  std::filesystem::remove(corpus + ".bm25");  // `sound` has the old one mapped
  folder.write("c.jsonl.bm25", bytes);
  Passages damaged({corpus, {}, ""}, notices);
  EXPECT_EQ(text_of(damaged), std::pair(std::string("elm fir"), 2));
  EXPECT_NE(damaged.notice().find("was damaged (passage 2 is damaged) and was made again"), std::string::npos)
      << damaged.notice();
  EXPECT_EQ(text_of(damaged).second, 1);
  Passages next({corpus, {}, ""}, notices);
  EXPECT_EQ(text_of(next).second, 1) << "the file is sound again";
}

TEST(Passages, EveryDamagedByteIsFoundOrOfNoMatter) {
  TempFolder folder(quick_place());
  const std::string corpus =
      folder.write("c.jsonl", lines_of({"mill in Arn", "town hall", "a mill, a mill"}));
  const auto good = open(corpus).index;
  const auto answers = [](const PassageIndex& index) {
    std::string all;
    for (const char* const word : {"mill", "town", "arn", "a", "none"})
      for (const auto& [passage, score] : index.search(word, 9))
        all += fmt::format("{} {} {}\n", passage, score, index.passage(passage).document());
    return all;
  };
  const std::string right = answers(*good), bytes = read_text(corpus + ".bm25");
  size_t found = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const std::string path = folder.write("damaged", damaged);
    try {
      EXPECT_EQ(answers(PassageIndex(path)), right) << "byte " << at;
    } catch (const BadIndex&) {
      ++found;
    }
  }
  EXPECT_GT(found, bytes.size() * 9 / 10);  // the others lie between sections
}

/// Makes the sums of an index right again, as far as it is one.
std::string with_right_sums(std::string bytes) {
  IndexTail tail;
  if (bytes.size() < sizeof tail) return bytes;
  char* const at_tail = bytes.data() + bytes.size() - sizeof tail;
  std::memcpy(&tail, at_tail, sizeof tail);
  const auto part = [&](uint64_t at, uint64_t size) -> std::span<std::byte> {
    if (at > bytes.size() || size > bytes.size() - at) return {};
    return std::as_writable_bytes(std::span(bytes)).subspan(at, size);
  };
  tail.file_bytes = bytes.size();
  const auto each = [&]<class Entry>(const IndexSection& section, Entry, auto sum) {
    const auto entries = part(section.at, section.bytes);
    for (size_t at = 0; at + sizeof(Entry) <= entries.size(); at += sizeof(Entry)) {
      Entry entry;
      std::memcpy(&entry, entries.data() + at, sizeof entry);
      entry.sum = sum(entry, part(entry.at, entry.bytes));
      std::memcpy(entries.data() + at, &entry, sizeof entry);
    }
  };
  each(tail.entries, PassageEntry{}, passage_sum);
  each(tail.term_entries, TermEntry{},
       [](const TermEntry&, std::span<const std::byte> of) { return static_cast<uint32_t>(sum64(of)); });
  for (IndexSection* const section : {&tail.lengths, &tail.term_entries, &tail.term_words, &tail.about})
    section->sum = sum64(part(section->at, section->bytes));
  tail.tail_sum = sum64(std::as_bytes(std::span(&tail, 1)).subspan(offsetof(IndexTail, file_bytes)));
  std::memcpy(bytes.data() + bytes.size() - sizeof tail, &tail, sizeof tail);
  return bytes;
}

TEST(Fuzz, PassageIndexesAreReadOrRefused) {
  TempFolder folder(quick_place());
  std::mt19937_64 random(3);
  Texts seeds;
  for (const size_t count : {2u, 300u}) {
    const std::string corpus = folder.write("c.jsonl", lines_of(random_texts(random, count, 20)));
    open(corpus);
    seeds.push_back(read_text(corpus + ".bm25"));
  }
  const std::string path = folder.path("index");
  int64_t round = 0;
  const FuzzCount count =
      fuzz_target("passage_index", seeds, {std::string_view("\0\0\0\0", 4), "\xff\xff\xff\xff", "\x01"},
                  [&](const std::string& text) {
                    folder.write("index", ++round % 4 ? with_right_sums(text) : text);
                    const PassageIndex index(path);
                    for (const char* const question : {"the w0 w1 w2 w3 w4 w5", "a w19 w11"}) {
                      const auto found = index.search(question, 4);
                      std::vector<uint32_t> passages;
                      for (const auto& each : found) {
                        ASSERT_LT(each.passage, index.passages());
                        index.passage(each.passage);
                        passages.push_back(each.passage);
                      }
                      std::ranges::sort(passages);
                      index.scores(question, passages);
                    }
                  });
  EXPECT_GT(count.refused, 20);
}

TEST(Passages, TwoThatWantTheIndexMakeItOnce) {
  TempFolder folder;
  std::mt19937_64 random(5);
  const std::string corpus = folder.write("c.jsonl", lines_of(random_texts(random, 20'000, 4000)));
  std::vector<Opened> opened(3);
  {
    std::vector<std::jthread> threads;
    for (Opened& each : opened) threads.emplace_back([&] { each = open(corpus); });
  }
  size_t made = 0;
  for (const Opened& each : opened) {
    made += each.notices.size();
    EXPECT_EQ(each.index->search("w7 w8", 9).size(), 9u);
  }
  EXPECT_EQ(made, 1u);
  EXPECT_FALSE(std::filesystem::exists(corpus + ".bm25.part"));
}

TEST(Passages, ABuilderThatIsKilledHarmsNobody) {
  TempFolder folder;
  std::mt19937_64 random(6);
  const std::string corpus = folder.write("c.jsonl", lines_of(random_texts(random, 20'000, 4000)));
  int killed = 0;
  for (int delay = 1; delay < 200; delay += 20) {
    std::filesystem::remove(corpus + ".bm25");
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Texts notices;
      open_passages({corpus, {}, {}}, notices);
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    killed += WIFSIGNALED(status);
    if (std::filesystem::exists(corpus + ".bm25")) {
      EXPECT_NO_THROW(PassageIndex(corpus + ".bm25")) << "what has its name is whole";
    }
  }
  EXPECT_GT(killed, 0);
  EXPECT_EQ(open(corpus).index->passages(), 20'000u);
  EXPECT_FALSE(std::filesystem::exists(corpus + ".bm25.part"));
}

TEST(Passages, QuestionsGetTheirBest) {
  TempFolder folder;
  Job job;
  job.file = "job.yaml";
  job.task.kind = TaskKind::ask;
  job.input.id = "id";
  job.input.questions = "questions";
  job.input.top_documents = 2;
  job.input.corpus = folder.write("c.jsonl", lines_of({"Bread is baked.", "The mill is in Arn.",
                                                       "Arn is a town.", "Oss has a mill too."}));
  job.input.path = folder.write("rows.jsonl",
                                "{\"id\": 1, \"questions\": [\"Where is Arn, the town?\"]}\n"
                                "{\"id\": 2, \"questions\": [\"xyz?\"]}\n"
                                "{\"id\": 3, \"questions\": [\"Oss?\", \"bread\", \"baked bread\"]}\n");
  const CorpusRecords rows = read_all(job, nullptr);
  ASSERT_EQ(rows.records.size(), 2u);
  EXPECT_EQ(rows.records[0].documents, (Texts{"The mill is in Arn.", "Arn is a town."}));
  EXPECT_EQ(rows.records[0].document_ids, (std::vector<json>{"p1", "p2"}));
  EXPECT_GT(rows.records[0].questions[0].relevance[1], rows.records[0].questions[0].relevance[0]);
  EXPECT_EQ(rows.records[1].document_ids, (std::vector<json>{"p0", "p3"}));
  EXPECT_LT(rows.records[1].questions[0].relevance[0], 1e-7) << "another question found it";
  EXPECT_GT(rows.records[1].questions[2].relevance[0], rows.records[1].questions[1].relevance[0]);
  ASSERT_EQ(rows.rejects.size(), 1u);
  EXPECT_EQ(rows.rejects[0].reason, "no passage of input.corpus has a word of the question");
}

}  // namespace
}  // namespace sheaf

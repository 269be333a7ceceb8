// The answers that a run leaves in its folder: written, found again, resumed, damaged.
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include "io/answers/answer_log.h"
#include "io/answers/reuse.h"
#include "io/base/file_layer.h"
#include "tests/files.h"
#include "tests/fuzz.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

AnswerKey random_key(std::mt19937_64& random) {
  AnswerKey key;
  for (uint8_t& byte : key) byte = static_cast<uint8_t>(random());
  return key;
}

/// `depth`: of answers inside of it.
Answer random_answer(std::mt19937_64& random, int depth = 3) {
  Answer answer;
  const size_t length = random() % 50 == 0 ? random() % 5000 : random() % 8;
  for (size_t i = 0; i < length; ++i)
    answer.tokens.push_back(static_cast<TokenId>(random() % (random() % 3 ? 300 : 2000000)));
  answer.ending = static_cast<Ending>(random() % 4);
  answer.logprob = -std::ldexp(static_cast<double>(random() % 100000), -13);
  if (random() % 4 == 0)
    for (size_t i = 0; i < length; ++i) answer.voices.push_back(static_cast<int32_t>(1 + random() % 300));
  if (random() % 3 == 0) {
    answer.null_logprob = -1.25 * static_cast<double>(random() % 10);
    answer.alternative = -3.5;
    answer.null_margin = random() % 2 ? 0.125 : std::numeric_limits<double>::infinity();
  }
  for (size_t i = depth > 0 && random() % 8 == 0 ? random() % 6 : 0; i > 0; --i)
    answer.inner.push_back({static_cast<int32_t>(random() % 1000), static_cast<int32_t>(random() % 200),
                            random_answer(random, depth - 1)});
  return answer;
}

void expect_same(const Answer& a, const Answer& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.ending, b.ending);
  EXPECT_EQ(a.voices, b.voices);
  EXPECT_EQ(a.logprob, b.logprob);
  EXPECT_EQ(a.null_logprob, b.null_logprob);
  EXPECT_EQ(a.alternative, b.alternative);
  EXPECT_EQ(a.null_margin, b.null_margin);
  ASSERT_EQ(a.inner.size(), b.inner.size());
  for (size_t i = 0; i < a.inner.size(); ++i) {
    EXPECT_EQ(a.inner[i].entry, b.inner[i].entry);
    EXPECT_EQ(a.inner[i].field, b.inner[i].field);
    expect_same(a.inner[i].answer, b.inner[i].answer);
  }
}

/// The key of a question whose answer lists entries as `entries` says.
AnswerKey key_of(const EntryParts& entries) {
  QuestionParts question;
  question.tokens = {1, 2, 3};
  question.entries = std::make_shared<EntryParts>(entries);
  auto bin = std::make_shared<BinParts>();
  bin->questions = {question};
  RecordParts parts;
  parts.bin = bin;
  parts.document = {4, 5};
  AnswerKeys keys({{"model", "m"}}, false);
  return keys.of(Record{}, parts, false).at(0);
}

TEST(AnswerKey, ChangesWithWhatIsAskedOfEntries) {
  EntryParts entries;
  entries.most_entries = 3;
  entries.questions.emplace_back().tokens = {7, 8};
  const AnswerKey key = key_of(entries);
  EXPECT_EQ(key_of(entries), key);
  EntryParts more = entries, other = entries, chosen = entries;
  more.most_entries = 4;
  other.questions[0].tokens = {7, 9};
  chosen.anchors = {"S", "M"};
  EntryParts two = chosen;
  two.anchors = {"S", "L"};
  const std::set<AnswerKey> keys{key, key_of(more), key_of(other), key_of(chosen), key_of(two)};
  EXPECT_EQ(keys.size(), 5u);
}

TEST(AnswerBytes, ComeBackAsTheyWere) {
  std::mt19937_64 random(1);
  std::string bytes;
  std::vector<Answer> answers;
  for (int i = 0; i < 500; ++i) append_answer(answers.emplace_back(random_answer(random)), bytes);
  std::string_view rest = bytes;
  for (const Answer& answer : answers) {
    const auto read = take_answer(rest);
    ASSERT_TRUE(read);
    expect_same(*read, answer);
  }
  EXPECT_TRUE(rest.empty());
  EXPECT_FALSE(take_answer(rest));
}

TEST(AnswerBytes, AnyBytesAreReadOrRefused) {
  std::mt19937_64 random(2);
  int64_t read = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes;
    append_answer(random_answer(random), bytes);
    if (i % 2) bytes.resize(random() % (bytes.size() + 1));
    for (size_t changes = random() % 4; changes > 0 && !bytes.empty(); --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    keep_input(bytes);
    std::string_view rest = bytes;
    while (const auto answer = take_answer(rest)) {
      std::string again, twice;
      append_answer(*answer, again);
      std::string_view written = again;
      const auto same = take_answer(written);
      ASSERT_TRUE(same && written.empty()) << "what was read can be written";
      append_answer(*same, twice);
      ASSERT_EQ(twice, again);
      ++read;
    }
    refused += !rest.empty();
  }
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

TEST(KeyTable, FindsWhatAMapFinds) {
  std::mt19937_64 random(3);
  const TempFolder folder;
  KeyTable table(folder.path());
  std::map<AnswerKey, int64_t> right;
  EXPECT_FALSE(table.find(random_key(random)));
  for (int i = 0; i < 30000; ++i) {
    AnswerKey key = random_key(random);
    if (i % 2)
      key = right.begin()->first, key[11] = static_cast<uint8_t>(i), key[10] = static_cast<uint8_t>(i >> 8);
    if (right.contains(key)) continue;
    const auto place = static_cast<int64_t>(random() % static_cast<uint64_t>(kLargestPlace));
    table.add(key, place);
    right[key] = place;
  }
  EXPECT_EQ(table.size(), static_cast<int64_t>(right.size()));
  ScratchFile file(folder.path());
  const auto packed = table.packed(file);
  EXPECT_LE(packed.size(), 10 * right.size());
  for (const auto& [key, place] : right) {
    ASSERT_EQ(table.find(key), place);
    ASSERT_EQ(find_packed(packed, key, [&, at = place](int64_t found) { return found == at; }), place);
  }
  for (int i = 0; i < 1000; ++i) {
    const AnswerKey key = random_key(random);
    EXPECT_FALSE(table.find(key));
    EXPECT_FALSE(find_packed(packed, key, [](int64_t) { return false; }));
  }
}

TEST(KeyTable, AnyBytesAreATable) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random() % 4000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const auto table = std::as_bytes(std::span(bytes));
    for (int j = 0; j < 20; ++j)
      EXPECT_FALSE(find_packed(table, random_key(random), [](int64_t) { return false; }));
  }
  // A table without a free entry, in which every entry looks like the key's.
  for (int byte = 1; byte < 256; ++byte) {
    AnswerKey key;
    key.fill(static_cast<uint8_t>(byte));
    const std::string bytes(800, static_cast<char>(byte));
    int asked = 0;
    EXPECT_FALSE(find_packed(std::as_bytes(std::span(bytes)), key, [&](int64_t place) {
      EXPECT_GE(place, 0);
      EXPECT_LE(place, kLargestPlace);
      ++asked;
      return false;
    }));
    EXPECT_GT(asked, 0) << byte;
  }
}

class Answers : public testing::Test {
 protected:
  /// Adds a group of answers, some of them known from an earlier group.
  void add_group(AnswerLog& log, int64_t position) {
    for (int i = 0; i < 40; ++i) {
      const bool old = random_() % 4 == 0 && !kept_.empty();
      const AnswerKey key = old ? kept_.begin()->first : random_key(random_);
      const Answer answer = old ? kept_.begin()->second.first : random_answer(random_);
      log.add(key, answer);
      kept_.try_emplace(key, answer, position);
    }
    log.commit(position);
  }
  void expect_kept(const std::function<std::optional<Answer>(const AnswerKey&)>& find, int64_t position) {
    int found = 0;
    for (const auto& [key, kept] : kept_) {
      const auto answer = find(key);
      ASSERT_EQ(answer.has_value(), kept.second <= position);
      if (answer) expect_same(*answer, kept.first), ++found;
    }
    EXPECT_GT(found, 0);
    EXPECT_FALSE(find(random_key(random_)));
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() + "/" + name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) { return *read_whole(folder_.path() + "/" + name); }

  TempFolder folder_;
  std::mt19937_64 random_{5};
  std::map<AnswerKey, std::pair<Answer, int64_t>> kept_;  ///< with the end of their group
  const ordered_json settings_{{"model", "a"}, {"job", {{"model", {{"dtype", "f32"}}}}}};
};

TEST_F(Answers, AreFoundDuringAndAfterTheRun) {
  AnswerLog log(real_files(), folder_.path(), 0);
  for (int64_t position = 10; position <= 50; position += 10) add_group(log, position);
  expect_kept([&](const AnswerKey& key) { return log.find(key); }, 50);
  const AnswerKey waiting = random_key(random_);
  log.add(waiting, Answer{{1, 2}});
  EXPECT_EQ(log.find(waiting)->tokens, (Tokens{1, 2}));
  log.commit(60);
  log.finish(settings_);
  std::string trouble;
  const EarlierAnswers earlier(folder_.path(), settings_, trouble);
  EXPECT_EQ(trouble, "");
  expect_kept([&](const AnswerKey& key) { return earlier.find(key); }, 50);
  EXPECT_EQ(earlier.find(waiting)->tokens, (Tokens{1, 2}));
}

TEST_F(Answers, OfAKilledSessionAreKeptAndContinued) {
  {
    AnswerLog log(real_files(), folder_.path(), 0);
    for (int64_t p = 10; p <= 50; p += 10) add_group(log, p);
  }
  const std::string whole = read("answers.log.part");
  // The run folder committed rows up to 30; what the log has more of is dropped.
  {
    AnswerLog log(real_files(), folder_.path(), 30);
    expect_kept([&](const AnswerKey& key) { return log.find(key); }, 30);
  }
  std::erase_if(kept_, [](const auto& each) { return each.second.second > 30; });
  for (int i = 0; i < 60; ++i) {
    // Cut or changed somewhere: every group before that is there, nothing else.
    std::string damaged = whole;
    const size_t at = random_() % whole.size();
    if (i % 2)
      damaged.resize(at);
    else
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write("answers.log.part", damaged);
    AnswerLog log(real_files(), folder_.path(), 30);
    for (const auto& [key, kept] : kept_)
      if (const auto answer = log.find(key)) expect_same(*answer, kept.first);
    const AnswerKey fresh = random_key(random_);
    log.add(fresh, Answer{{7}});
    log.commit(30);
    EXPECT_EQ(log.find(fresh)->tokens, Tokens{7});
  }
}

TEST_F(Answers, DamagedOrForeignOnesAreSkipped) {
  {
    AnswerLog log(real_files(), folder_.path(), 0);
    add_group(log, 10);
    log.finish(settings_);
  }
  const auto trouble_with = [&](const ordered_json& settings) {
    std::string trouble;
    const EarlierAnswers earlier(folder_.path(), settings, trouble);
    EXPECT_EQ(trouble.empty(), earlier.find(kept_.begin()->first).has_value());
    return trouble;
  };
  EXPECT_EQ(trouble_with(settings_), "");
  EXPECT_EQ(trouble_with({{"model", "a"}, {"job", {{"model", {{"dtype", "int8"}}}}}}),
            "its answers cannot be used: model.dtype was \"f32\" and is now \"int8\"");
  for (const char* name : {"answers.log", "answers.table"}) {
    const std::string right = read(name);
    std::string wrong = right;
    wrong[right.size() / 2] = static_cast<char>(wrong[right.size() / 2] ^ 4);
    write(name, wrong);
    EXPECT_EQ(trouble_with(settings_), std::string(name) + " is damaged");
    write(name, right);
  }
  const std::string about = read("answers.json");
  for (int i = 0; i < 300; ++i) {
    std::string wrong = about;
    wrong[random_() % wrong.size()] = static_cast<char>(random_());
    write("answers.json", keep_input(wrong));
    trouble_with(settings_);
  }
  std::filesystem::remove(folder_.path() + "/answers.json");
  EXPECT_NE(trouble_with(settings_).find("no answers.json"), std::string::npos);
}

TEST(AnswerLog, DistinguishesKeptAnswersFromThoseOfRows) {
  std::mt19937_64 random(9);
  const TempFolder folder;
  const AnswerKey row = random_key(random), early = random_key(random), late = random_key(random);
  const Answer answer = random_answer(random);
  {
    AnswerLog log(real_files(), folder.path(), 5, 5);
    log.keep(early, answer);
    log.commit(5);  // before any row
    log.add(row, answer);
    log.commit(8);
    log.keep(late, answer);
    log.commit(9);  // after a row whose answers were known
  }
  AnswerLog log(real_files(), folder.path(), 9, 5);
  for (const AnswerKey& key : {row, early, late}) {
    ASSERT_TRUE(log.find(key));
    expect_same(*log.find(key), answer);
  }
  EXPECT_FALSE(log.was_kept(row));
  EXPECT_TRUE(log.was_kept(early));
  EXPECT_TRUE(log.was_kept(late));
  EXPECT_FALSE(log.was_kept(late)) << "once";
}

}  // namespace
}  // namespace sheaf

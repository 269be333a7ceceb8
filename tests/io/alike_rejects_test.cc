// A damaged stretch of a corpus: counted in full, told in short, and the same wherever reading begins.
#include <gtest/gtest.h>

#include "core/task/record.h"
#include "io/base/sha256.h"
#include "io/corpus/corpus_formats.h"
#include "io/run_folder/merge_shards.h"
#include "io/run_folder/read_rows.h"
#include "io/run_folder/run_folder.h"
#include "tests/files.h"
#include "tests/fuzz.h"
#include "tests/io/corpus_records.h"

namespace sheaf {
namespace {

constexpr int64_t kToldAlone = AlikeRejects::kToldEach, kToldAsOne = AlikeRejects::kToldTogether;

std::string usable_line(int64_t number) {
  return fmt::format("{{\"sku\": {}, \"category\": \"Tea\", \"title\": \"t\", \"text\": \"x\"}}\n", number);
}

struct Given {
  int64_t from = 0, to = 0;  ///< numbers of the records
  std::string text;          ///< an id, or a reason
  int64_t records = 1, row = 0, last_row = 0;
  bool operator==(const Given&) const = default;
};

std::vector<Given> given_by(Corpus& corpus) {
  std::vector<Given> all;
  for (;;) {
    Given given;
    given.from = corpus.position();
    const auto row = corpus.next();
    if (!row) return all;
    given.to = corpus.position();
    if (const auto* reject = std::get_if<Reject>(&*row)) {
      given.text = reject->reason;
      given.records = reject->records;
      given.row = reject->place.row;
      given.last_row = reject->last_row;
    } else {
      given.text = std::get<Record>(*row).id.dump();
      given.row = std::get<Record>(*row).place.row;
    }
    EXPECT_EQ(given.to - given.from, given.records);
    all.push_back(std::move(given));
  }
}

int64_t records_given(const std::vector<Given>& all) {
  int64_t records = 0;
  for (const Given& each : all) records += each.records;
  return records;
}

TEST(RepeatedRejects, AreOnlyCountedAfterTheFirstHundred) {
  const TempFolder folder;
  std::string text = usable_line(0);
  for (int i = 0; i < 2500; ++i) text += "oops " + std::to_string(i) + "\n";
  text += usable_line(1) + "{}\n";
  const std::vector<Given> all = given_by(*open_corpus(extract_job(folder.write("a.jsonl", text)), &kSchema));
  // One good, a hundred told, then up to 1000, 2000 and the end of the stretch, one good, one of another
  // kind.
  ASSERT_EQ(all.size(), 1u + 100 + 3 + 2);
  EXPECT_EQ(records_given(all), 2503);
  EXPECT_EQ(all[101].from, 101);
  EXPECT_EQ(all[101].to, 1000);
  EXPECT_EQ(all[101].row, 102);
  EXPECT_EQ(all[101].last_row, 1000);
  EXPECT_EQ(all[103].to, 2501);
  EXPECT_EQ(all[104].text, "1");
  EXPECT_EQ(all[105].records, 1);
}

TEST(RepeatedRejects, WithAnIdAreListedEach) {
  const TempFolder folder;
  std::string with_id, without;
  for (int i = 0; i < 500; ++i) {
    with_id += fmt::format("{{\"sku\": {}, \"category\": \"None\", \"title\": \"t\", \"text\": \"x\"}}\n", i);
    without += "{\"category\": \"None\", \"title\": \"t\", \"text\": \"x\"}\n";
  }
  const std::string path = folder.write("a.jsonl", usable_line(0) + with_id);
  EXPECT_EQ(given_by(*open_corpus(extract_job(path), &kSchema)).size(), 501u);
  Job numbered = extract_job(folder.write("b.jsonl", without));
  numbered.input.id.clear();
  EXPECT_EQ(given_by(*open_corpus(numbered, &kSchema)).size(), 101u) << "a number is no id to look for";
  // A batch file: every custom_id has its line among the errors.
  std::string requests;
  for (int i = 0; i < 300; ++i) requests += fmt::format("{{\"custom_id\": \"{}\", \"body\": 3}}\n", i);
  Job batch;
  batch.file = "job.yaml";
  batch.task.kind = TaskKind::chat;
  batch.input.path = folder.write("c.jsonl", requests);
  EXPECT_EQ(given_by(*open_corpus(batch, nullptr)).size(), 300u);
}

TEST(RepeatedRejects, StretchesEndWithTheirFile) {
  const TempFolder folder;
  std::string bad;
  for (int i = 0; i < 150; ++i) bad += "1,2\n";
  folder.write("a.csv", "sku,category,title,text\n" + bad);
  folder.write("b.csv", "sku,category,title,text\n" + bad);
  const std::vector<Given> all = given_by(*open_corpus(extract_job(folder.path()), &kSchema));
  ASSERT_EQ(all.size(), 202u);
  EXPECT_EQ(all[100].records, 50);
  EXPECT_EQ(all[201].records, 50);
}

/// What is given out from a place on does not depend on where reading began; a stretch belongs to its first.
TEST(Fuzz, RepeatedRejectsFromAnyRecordOn) {
  const TempFolder folder;
  fuzz([&](std::mt19937_64& random) {
    std::string text = usable_line(0);
    int64_t number = 1;
    for (size_t stretch = 1 + random() % 6; stretch > 0; --stretch) {
      const int64_t sizes[] = {
          1,          kToldAlone - 1, kToldAlone, kToldAlone + 1, kToldAlone + 2, kToldAsOne - 1,
          kToldAsOne, kToldAsOne + 1};
      int64_t size = sizes[random() % 8] + static_cast<int64_t>(random() % 3);
      if (random() % 8 == 0) size += kToldAsOne;
      const size_t kind = random() % 4;
      for (; size > 0; --size, ++number)
        text += kind == 0 ? usable_line(number) : kind == 1 ? "oops\n" : kind == 2 ? "{}\n" : "[1]\n";
    }
    Job job = extract_job(folder.write("f.jsonl", text));
    if (random() % 2) job.input.id.clear();
    const std::vector<Given> all = given_by(*open_corpus(job, &kSchema));
    ASSERT_EQ(records_given(all), number);
    ASSERT_EQ(open_corpus(job, &kSchema)->count_records(), number);
    ASSERT_EQ(open_corpus(job, &kSchema)->count_records(number / 2), number / 2);
    for (int tries = 0; tries < 8; ++tries) {
      const auto position = static_cast<int64_t>(random() % static_cast<uint64_t>(number + 1));
      const auto corpus = open_corpus(job, &kSchema);
      if (tries % 2)  // some of it was read
        while (corpus->position() < position / 2) corpus->next();
      const int64_t read = corpus->position();
      if (read > position) continue;
      corpus->skip_to(position);
      std::vector<Given> expected;
      for (const Given& each : all)
        if (each.from >= position) expected.push_back(each);
      ASSERT_EQ(given_by(*corpus), expected) << "from " << position << " after " << read;
    }
  });
}

/// The folder of a run over records that it all rejects but every 3000th; stops after `stop` commits.
RunFolderOptions alike_run_options(const std::string& path, int64_t first = 0) {
  RunFolderOptions options;
  options.path = path;
  options.corpus_folder = std::filesystem::path(path).parent_path().string() + "/";
  options.first_row = first;
  options.fingerprint = {{"job", {{"seed", 1}}}, {"corpus", {{"a.jsonl", {}}}}, {"shard", nullptr}};
  return options;
}

bool write_alike_run(Corpus& corpus, RunFolderOptions options, int64_t group, int64_t stop) {
  RunFolder run(real_files(), std::move(options));
  corpus.skip_to(run.position());
  for (int64_t commits = 0;; ++commits) {
    if (commits == stop) return false;
    const int64_t end = (corpus.position() / group + 1) * group;
    bool more = true;
    while (corpus.position() < end && more) {
      const auto row = corpus.next();
      more = row.has_value();
      if (!more) break;
      if (const auto* reject = std::get_if<Reject>(&*row))
        run.reject(*reject);
      else
        run.row({std::get<Record>(*row).id});
    }
    run.commit(corpus.position());
    if (more) continue;
    run.finish("{}\n");
    return true;
  }
}

TEST(RepeatedRejects, ARunThatIsStoppedAnywhereEndsWithTheSameBytes) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 7000; ++i) text += i % 3000 == 50 ? usable_line(i) : "oops " + std::to_string(i) + "\n";
  const Job job = extract_job(folder.write("a.jsonl", text));
  const auto open = [&] { return open_corpus(job, &kSchema); };
  write_alike_run(*open(), alike_run_options(folder.path("whole")), 64, -1);
  const std::string whole = read_text(folder.path("whole/rejects.jsonl"));
  const auto manifest = nlohmann::json::parse(read_text(folder.path("whole/manifest.json")));
  EXPECT_EQ(manifest["rows"], 3);
  EXPECT_EQ(manifest["rejects"], 6997) << "records, however few lines tell of them";
  EXPECT_LT(std::ranges::count(whole, '\n'), 400);
  for (const int64_t stop : {1, 2, 3, 5}) {
    const std::string path = folder.path("stopped" + std::to_string(stop));
    int sessions = 1;
    while (!write_alike_run(*open(), alike_run_options(path), 64, stop)) ++sessions;
    EXPECT_GT(sessions, 1);
    for (const char* name : {"/rejects.jsonl", "/rows-00000.jsonl", "/manifest.json"})
      EXPECT_EQ(read_text(path + name), read_text(folder.path("whole") + name)) << stop << name;
  }
  const RejectedRecords rejected(folder.path("whole"), read_manifest(folder.path("whole"), ""),
                                 {job.input.path});
  EXPECT_TRUE(rejected.has({job.input.path, 1}));
  EXPECT_FALSE(rejected.has({job.input.path, 51}));
}

/// Shards cut the corpus anywhere: their rejects, one after the other, are those of the whole run.
TEST(RepeatedRejects, AreTheSameInShardsAsInOneRun) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += i % 2500 == 50 ? usable_line(i) : "oops\n";
  const Job job = extract_job(folder.write("a.jsonl", text));
  write_alike_run(*open_corpus(job, &kSchema), alike_run_options(folder.path("whole")), 64, -1);
  for (const int64_t count : {2, 3, 7}) {
    std::vector<std::string> shards;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = 5000 / 64 * i / count * 64,
                    end = i + 1 < count ? 5000 / 64 * (i + 1) / count * 64 : 5000;
      RunFolderOptions options = alike_run_options(folder.path(fmt::format("shard{}of{}", i, count)), first);
      options.fingerprint["shard"] = {{"index", i}, {"count", count}, {"first", first}, {"end", end}};
      shards.push_back(options.path);
      const auto corpus = first_rows(open_corpus(job, &kSchema), end);
      write_alike_run(*corpus, std::move(options), 64, -1);
    }
    const std::string out = folder.path("merged" + std::to_string(count));
    const Merged merged = merge_shards(real_files(), out, shards);
    EXPECT_EQ(merged.rows, 2);
    EXPECT_EQ(merged.rejects, 4998);
    EXPECT_EQ(read_text(out + "/rejects.jsonl"), read_text(folder.path("whole/rejects.jsonl"))) << count;
  }
}

}  // namespace
}  // namespace sheaf

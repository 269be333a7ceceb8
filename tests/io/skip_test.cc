// A corpus that skips to a row gives what it would have given there, whatever lies before.
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/files.h"
#include "tests/io/corpus_records.h"
#include "tests/io/parquet_sample.h"

namespace sheaf {
namespace {

using nlohmann::json;

/// What next() gives, each with the position before it.
std::vector<std::pair<int64_t, std::string>> rest_of(Corpus& corpus) {
  std::vector<std::pair<int64_t, std::string>> rest;
  for (;;) {
    const int64_t position = corpus.position();
    const auto row = corpus.next();
    if (!row) return rest;
    if (const auto* record = std::get_if<Record>(&*row))
      rest.emplace_back(position, record->place.file + std::to_string(record->place.row) + record->id.dump() +
                                      record->document);
    else
      rest.emplace_back(position, std::get<Reject>(*row).reason);
  }
}

void expect_skips(const Job& job) {
  const auto all = rest_of(*open_corpus(job, &kSchema));
  const int64_t rows = open_corpus(job, &kSchema)->count_records();
  ASSERT_GT(all.size(), 5u);
  for (int64_t position = 0; position <= rows; ++position) {
    const auto corpus = open_corpus(job, &kSchema);
    if (position % 2) corpus->next();
    corpus->skip_to(position);
    std::vector<std::pair<int64_t, std::string>> expected;
    for (const auto& entry : all)
      if (entry.first >= position) expected.push_back(entry);
    ASSERT_EQ(rest_of(*corpus), expected) << "from row " << position;
    EXPECT_EQ(corpus->position(), rows);
  }
}

TEST(SkipTo, GivesTheSameJsonlRows) {
  const TempFolder folder;
  std::string lines;
  for (int i = 0; i < 20; ++i)
    lines += i % 5 == 3
                 ? "broken\n\n"
                 : json{{"category", "Tea"}, {"title", std::to_string(i)}, {"text", "x"}}.dump() + "\n";
  folder.write("a.jsonl", lines);
  folder.write("b.jsonl", lines);
  Job job = extract_job(folder.path());
  job.input.id.clear();  // ids count rows across files
  expect_skips(job);
  job.input.limit = 27;
  expect_skips(job);
}

TEST(SkipTo, GivesTheSameCsvRows) {
  const TempFolder folder;
  std::string lines = "category,title,text\n";
  for (int i = 0; i < 20; ++i)
    lines += i % 5 == 3 ? "Tea,\"open\n\n" : fmt::format("Tea,\"{}\n{}\",x\n", i, i);
  folder.write("a.csv", lines);
  folder.write("b.csv", lines);
  Job job = extract_job(folder.path());
  job.input.id.clear();
  expect_skips(job);
}

TEST(SkipTo, GivesTheSameParquetRowsBehindLostOnes) {
  const TempFolder folder;
  std::vector<SampleColumn> columns = {{"sku", "int64", json::array()},
                                       {"category", "string", json::array()},
                                       {"title", "string", json::array()},
                                       {"text", "string", json::array()}};
  for (int i = 0; i < 400; ++i) {
    columns[0].values.push_back(i);
    columns[1].values.push_back("Tea");
    columns[2].values.push_back("title " + std::to_string(i));
    columns[3].values.push_back(std::string(200, 'x') + std::to_string(i));
  }
  SampleLayout layout;
  layout.rows_per_group = 150;
  layout.checksums = true;
  const std::string path = folder.path("a.parquet");
  write_parquet(path, columns, layout);
  expect_skips(extract_job(path));

  std::string bytes = read_text(path);
  const size_t at = bytes.find("x220");  // in the second row group
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'y';
  std::ofstream(path, std::ios::binary) << bytes;
  const auto rows = read_all(extract_job(path), &kSchema);
  ASSERT_EQ(rows.rejects.size(), 1u);
  expect_skips(extract_job(path));
}

}  // namespace
}  // namespace sheaf

// Records that come as Arrow batches, read once.
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

#include "tests/errors.h"
#include "tests/files.h"
#include "tests/io/corpus_records.h"
#include "tests/io/parquet_sample.h"

namespace sheaf {
namespace {

using nlohmann::json;

std::vector<SampleColumn> three_rows() {
  return {{"sku", "int64", {1, 2, 3}},
          {"category", "dictionary", {"Tea", "Coffee", "Tea"}},
          {"title", "large_string", {"green", "dark", nullptr}},
          {"text", "string", {"one", nullptr, "three"}}};
}

class StreamCorpus : public testing::Test {
 protected:
  std::string write(const std::vector<SampleColumn>& columns, int64_t rows_per_batch = 1000) const {
    write_arrow_stream(folder_.path("s.arrows"), columns, rows_per_batch);
    return folder_.path("s.arrows");
  }
  Job job(const std::string& path) const { return with_stream(extract_job(""), path); }

  const TempFolder folder_;
};

TEST_F(StreamCorpus, GivesTheRecordsOfAFileInOrderAcrossBatches) {
  for (const int64_t rows_per_batch : {1, 2, 1000}) {
    const CorpusRecords rows = read_all(job(write(three_rows(), rows_per_batch)), &kSchema);
    ASSERT_EQ(rows.records.size(), 3u) << (rows.rejects.empty() ? "" : rows.rejects[0].reason);
    EXPECT_EQ(rows.records[0].id, json(1));
    EXPECT_EQ(rows.records[0].document, "green\none");
    EXPECT_EQ(rows.records[1].category, "Coffee");
    EXPECT_EQ(rows.records[1].document, "dark");
    EXPECT_EQ(rows.records[2].document, "three");
    EXPECT_EQ(rows.records[2].place.file, "the stream");
    EXPECT_EQ(rows.order, (std::vector<int64_t>{1, 2, 3}));
  }
}

TEST_F(StreamCorpus, RejectsWhatAFileOfTheSameRowsWould) {
  std::vector<SampleColumn> columns = three_rows();
  columns[0].values = {1, nullptr, 3};
  columns[1].values = {"Tea", "Tea", "Milk"};
  const CorpusRecords streamed = read_all(job(write(columns)), &kSchema);
  write_parquet(folder_.path("c.parquet"), columns);
  const CorpusRecords read = read_all(extract_job(folder_.path("c.parquet")), &kSchema);
  ASSERT_EQ(streamed.rejects.size(), 2u);
  ASSERT_EQ(read.rejects.size(), 2u);
  EXPECT_EQ(streamed.rejects[0].reason, "column \"sku\" is empty");
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(streamed.rejects[i].reason, read.rejects[i].reason);
}

TEST_F(StreamCorpus, RefusesColumnsThatAreMissingOrOfAnotherType) {
  std::vector<SampleColumn> columns = three_rows();
  columns[2].name = "titel";
  expect_refusal([&] { open_corpus(job(write(columns)), &kSchema); },
                 {"input.document", "the stream has no column \"title\"", "did you mean \"titel\"?"});
  columns = three_rows();
  columns[0] = {"sku", "questions", {{}, {}, {}}};
  columns[0].values = json::array({json::array(), json::array(), json::array()});
  const CorpusRecords lists = read_all(job(write(columns)), &kSchema);
  EXPECT_EQ(lists.records.size(), 0u);
  columns[0] = {"sku", "item", json::array({json::object(), json::object(), json::object()})};
  expect_refusal([&] { open_corpus(job(write(columns)), &kSchema); },
                 {"input.id", "column \"sku\" of the stream is struct<", "not text or a number"});
}

TEST_F(StreamCorpus, RefusesWhatIsNoStream) {
  const auto refused = [&](const std::string& bytes, const std::vector<std::string>& parts) {
    expect_refusal([&] { open_corpus(job(folder_.write("x", bytes)), &kSchema); }, parts);
  };
  refused("", {"the stream: this is not a stream of Arrow's IPC format", "it is empty"});
  refused("{\"sku\": 1}\n", {"looks like JSON lines", "leave out --format arrow"});
  write_parquet(folder_.path("p"), three_rows());
  refused(read_text(folder_.path("p")), {"it is Parquet; name the file as input.path"});
  write_arrow(folder_.path("a"), three_rows());
  refused(read_text(folder_.path("a")), {"it is an Arrow file; write a stream instead"});
  refused(std::string(100, 'x'), {"this is not a stream of Arrow's IPC format"});
}

TEST_F(StreamCorpus, RefusesAStreamThatBreaksOffAndSaysWhere) {
  const std::string whole = read_text(write(three_rows(), 1));
  // The mark of the end is optional: 8 bytes less is still whole, and so is a cut between two batches.
  EXPECT_EQ(read_all(job(folder_.write("x", whole.substr(0, whole.size() - 8))), &kSchema).count, 3);
  expect_refusal([&] { read_all(job(folder_.write("x", whole.substr(0, whole.size() - 20))), &kSchema); },
                 {"the stream: the stream breaks off or is damaged after row 2"});
}

TEST_F(StreamCorpus, IsReadOnceAndNotCounted) {
  const Job once = job(write(three_rows()));
  const auto corpus = open_corpus(once, &kSchema);
  EXPECT_TRUE(corpus->is_read_once());
  expect_refusal([&] { corpus->count_records(); }, {"a stream cannot be counted"});
  Job few = job(write(three_rows()));
  few.input.limit = 2;
  const auto first = open_corpus(few, &kSchema);
  EXPECT_EQ(first->records_expected(), std::nullopt);
  EXPECT_EQ(read_all(*first).records.size(), 2u);
  Job contexts = with_stream(ask_job(""), write(three_rows()));
  contexts.input.context_id = "sku";
  expect_refusal([&] { open_corpus(contexts, nullptr); }, {"input.context_id", "read twice"});
}

TEST_F(StreamCorpus, AStopEndsTheWaitForTheOtherEnd) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  std::atomic<bool> stop = false;
  std::thread soon([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop = true;
  });
  EXPECT_EQ(error_of([&] { open_ipc_stream(pipe[0], "the pipe", stop); }),
            "interrupted while reading the pipe");
  soon.join();
  for (const int file : pipe) ::close(file);
}

}  // namespace
}  // namespace sheaf

#include "io/base/store.h"

#include <algorithm>
#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "io/base/store_retry.h"
#include "tests/errors.h"
#include "tests/fuzz.h"
#include "tests/io/corpus_records.h"
#include "tests/io/parquet_sample.h"
#include "tests/packed_text.h"

namespace sheaf {
namespace {

std::string uri_of(const TempFolder& folder, const std::string& name = {}) {
  return "file://" + folder.path(name);
}

TEST(StoreUri, IsSplitIntoItsParts) {
  EXPECT_TRUE(is_uri("s3://b/k"));
  EXPECT_TRUE(is_uri("abfs://c@a/k"));
  for (const char* path : {"a/b", "/a", "://x", "a b://x", "", "-", "./s3:/x"})
    EXPECT_FALSE(is_uri(path)) << path;
  const StoreUri uri = parse_store_uri("s3://bucket/a/b %20*.jsonl/?region=eu&scheme=http");
  EXPECT_EQ(uri.scheme, "s3");
  EXPECT_EQ(uri.authority, "bucket");
  EXPECT_EQ(uri.key, "a/b %20*.jsonl");
  EXPECT_EQ(uri.query, "region=eu&scheme=http");
  EXPECT_EQ(uri.name(), "s3://bucket/a/b %20*.jsonl");
  ::setenv("AWS_REGION", "us-west-2", 1);
  EXPECT_EQ(uri.root(), "s3://bucket?region=eu&scheme=http");
  EXPECT_EQ(parse_store_uri("s3://b/k").root(), "s3://b?region=us-west-2");
  ::unsetenv("AWS_REGION");
  EXPECT_EQ(parse_store_uri("hdfs://host:8020/a").root(), "hdfs://host:8020/");
  EXPECT_EQ(parse_store_uri("file:///a/b").key, "a/b");
  EXPECT_EQ(parse_store_uri("gcs://b/k").root(), "gs://b?retry_limit_seconds=15");
  EXPECT_EQ(parse_store_uri("abfs://c@a.dfs.core.windows.net/k").root(), "abfs://c@a.dfs.core.windows.net");
  ::setenv("AZURE_STORAGE_ACCOUNT", "acme", 1);
  EXPECT_EQ(parse_store_uri("az://c/k").root(), "abfs://acme@c");
  ::unsetenv("AZURE_STORAGE_ACCOUNT");
  EXPECT_NE(
      error_of([] { parse_store_uri("az://c/k").root(); }).find("set the environment variable AZURE_STORAGE"),
      std::string::npos);
}

TEST(StoreUri, SecretsAreRefusedAndNotRepeated) {
  for (const char* uri :
       {"s3://AKIA:hush@b/k", "s3://hush@b/k", "gs://me:hush@b/k", "abfs://c@a/k?client_secret=hush",
        "abfs://c@a/k?sv=1&sig=hush", "s3://b/k?region=x&secret_key=hush", "hdfs://u:hush@host/x"}) {
    const std::string message = error_of([&] { parse_store_uri(uri, "job.yaml:3: "); });
    EXPECT_TRUE(message.starts_with("job.yaml:3: the URI of ")) << message;
    EXPECT_NE(message.find("leave them out"), std::string::npos) << message;
    EXPECT_EQ(message.find("hush"), std::string::npos) << message;
  }
  EXPECT_NE(error_of([] { parse_store_uri("s3:///k"); }).find("names no bucket"), std::string::npos);
  EXPECT_NE(error_of([] { parse_store_uri("ftp://a/k"); }).find("copy it to this machine first"),
            std::string::npos);
}

TEST(Store, MissingSystemsAreNamed) {
  const std::string hdfs = error_of([] { list_corpus_uris("hdfs://nowhere:1/x"); });
  EXPECT_NE(hdfs.find("JAVA_HOME"), std::string::npos) << hdfs;
}

TEST(Store, ListsWhatAFolderWould) {
  const TempFolder folder;
  for (const char* name :
       {"a.jsonl", "sub/b.jsonl.gz", "sub/c.csv", ".hidden.jsonl", "_temporary/d.jsonl", "e.txt"})
    folder.write(name, "x");
  const auto listed = [&](const std::string& path) {
    std::vector<std::string> names;
    for (const std::string& uri : list_corpus_uris(uri_of(folder) + path)) {
      EXPECT_TRUE(uri.starts_with(uri_of(folder))) << uri;
      names.push_back(uri.substr(uri_of(folder).size()));
    }
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(listed(""), (Names{"/a.jsonl", "/sub/b.jsonl.gz", "/sub/c.csv"}));
  EXPECT_EQ(listed("/sub/"), (Names{"/sub/b.jsonl.gz", "/sub/c.csv"}));
  EXPECT_EQ(listed("/*.jsonl"), Names{"/a.jsonl"});
  EXPECT_EQ(listed("/*/[bc].*"), (Names{"/sub/b.jsonl.gz", "/sub/c.csv"}));
  EXPECT_EQ(listed("/e.txt"), Names{"/e.txt"});
  EXPECT_EQ(listed("/nothing"), Names{});
  EXPECT_EQ(listed("/no*"), Names{});
  EXPECT_EQ(listed_object(uri_of(folder, "e.txt")).bytes, 1);
  EXPECT_EQ(error_of([&] { listed_object(uri_of(folder, "no.jsonl")); }),
            uri_of(folder, "no.jsonl") + ": no such file");
}

TEST(Store, CorporaOfAllFormatsAreReadByUri) {
  const TempFolder folder;
  std::string lines, csv = "sku,category,title,text\n";
  for (int i = 0; i < 2000; ++i) {
    lines += fmt::format("{{\"sku\": \"{}\", \"category\": \"Tea\", \"title\": \"t{}\", \"text\": \"x\"}}\n",
                         i, i);
    csv += fmt::format("{},Tea,t{},x\n", i, i);
  }
  folder.write("l/a.jsonl", lines);
  folder.write("l/b.jsonl.gz", test::pack(lines, "gz"));
  folder.write("c/a.csv.zst", test::pack(csv, "zst"));
  std::filesystem::create_directory(folder.path("p"));
  write_parquet(folder.path("p/t.parquet"), {{"sku", "int64", {1, 2}},
                                             {"category", "string", {"Tea", "Tea"}},
                                             {"title", "string", {"a", "b"}},
                                             {"text", "string", {"x", "y"}}});
  const CorpusRecords rows = read_all(extract_job(uri_of(folder, "l")), &kSchema);
  ASSERT_EQ(rows.records.size(), 4000u);
  EXPECT_EQ(rows.records.back().document, "t1999\nx");
  EXPECT_EQ(rows.records.back().place.file, uri_of(folder, "l/b.jsonl.gz"));
  EXPECT_EQ(read_all(extract_job(uri_of(folder, "c/*.csv.zst")), &kSchema).records.size(), 2000u);
  EXPECT_EQ(read_all(extract_job(uri_of(folder, "p")), &kSchema).records.size(), 2u);
}

TEST(Store, AFileThatCannotBeReadEndsTheWork) {
  const TempFolder folder;
  const std::string line = "{\"sku\": 1, \"category\": \"Tea\", \"title\": \"t\", \"text\": \"x\"}\n";
  folder.write("a.jsonl", line + line);
  write_parquet(folder.path("b.parquet"), {{"sku", "int64", {1, 2}},
                                           {"category", "string", {"Tea", "Tea"}},
                                           {"title", "string", {"a", "b"}},
                                           {"text", "string", {"x", "y"}}});
  for (const char* name : {"a.jsonl", "b.parquet"}) {
    const auto corpus = open_corpus(extract_job(uri_of(folder, name)), &kSchema);
    std::filesystem::resize_file(folder.path(name), 20);
    EXPECT_NE(error_of([&] { read_all(*corpus); }).find("cannot be read: the file became shorter"),
              std::string::npos)
        << name;
  }
}

/// A file whose reads fail now and then, as those over a network do.
class FlakyFile : public arrow::io::RandomAccessFile {
 public:
  enum class Short { sometimes, always };
  explicit FlakyFile(std::string bytes, std::optional<Short> falls_short = {})
      : bytes_(std::move(bytes)), falls_short_(falls_short) {}
  arrow::Result<int64_t> ReadAt(int64_t position, int64_t size, void* to) override {
    const int read = ++reads_;
    if (read % 3 == 0) return arrow::Status::IOError("connection reset");
    // As Arrow does where a server sends less than it was asked for: it counts all of it.
    const bool whole = !falls_short_ || (falls_short_ == Short::sometimes && read % 2 == 0);
    const int64_t sent = whole ? size : size - 1 - read % size;
    if (elsewhere && position > 0 && read % 2 == 0) position = 0;
    std::memcpy(to, bytes_.data() + position, static_cast<size_t>(sent));
    return size;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t, int64_t) override {
    return arrow::Status::NotImplemented("x");
  }
  bool elsewhere = false;  ///< answers are now and then from the beginning, wherever they were asked for
  arrow::Result<int64_t> Read(int64_t, void*) override { return arrow::Status::NotImplemented("x"); }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t) override {
    return arrow::Status::NotImplemented("x");
  }
  arrow::Result<int64_t> GetSize() override { return static_cast<int64_t>(bytes_.size()); }
  arrow::Result<int64_t> Tell() const override { return 0; }
  arrow::Status Seek(int64_t) override { return arrow::Status::OK(); }
  arrow::Status Close() override { return arrow::Status::OK(); }
  bool closed() const override { return false; }

 private:
  std::string bytes_;
  std::optional<Short> falls_short_;
  std::atomic<int> reads_ = 0;
};

std::string random_bytes(size_t size) {
  std::string bytes(size, '\0');
  std::mt19937_64 random(7);
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

TEST(ReadAhead, NoticesShortReads) {
  const std::string bytes = random_bytes(9'000'001);
  const auto size = static_cast<int64_t>(bytes.size());
  const auto sometimes =
      read_ahead(std::make_shared<FlakyFile>(bytes, FlakyFile::Short::sometimes), size, "x");
  const auto read = sometimes->Read(size);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ((*read)->ToString(), bytes);
  ::setenv("SHEAF_STORE_SECONDS", "0", 1);
  const auto always = read_ahead(std::make_shared<FlakyFile>(bytes, FlakyFile::Short::always), size, "y");
  EXPECT_FALSE(always->Read(size).ok());
  EXPECT_THROW(check_read("y"), StoreUnreachable) << "another try may do";
  ::unsetenv("SHEAF_STORE_SECONDS");
}

TEST(ReadAhead, NoticesBytesFromAnotherPlace) {
  const std::string bytes = random_bytes(15'000'001);
  const auto size = static_cast<int64_t>(bytes.size());
  auto flaky = std::make_shared<FlakyFile>(bytes);
  flaky->elsewhere = true;
  const auto read = read_ahead(flaky, size, "x")->Read(size);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ((*read)->ToString(), bytes);
}

TEST(ReadAhead, NoReadGoesOnAfterTheFileIsGone) {
  class SlowFile : public FlakyFile {
   public:
    SlowFile(std::atomic<int>& begun, std::atomic<int>& reading)
        : FlakyFile(""), begun_(begun), reading_(reading) {}
    arrow::Result<int64_t> ReadAt(int64_t, int64_t size, void* to) override {
      ++reading_;
      ++begun_;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      std::memset(to, 'x', static_cast<size_t>(size));
      --reading_;
      return size;
    }

   private:
    std::atomic<int>&begun_, &reading_;
  };
  std::atomic<int> begun = 0, reading = 0;
  {
    const auto file = read_ahead(std::make_shared<SlowFile>(begun, reading), 40'000'000, "x");
    ASSERT_TRUE(file->Read(10).ok());
    while (begun < 2) std::this_thread::yield();  // parts further on are read without being asked for
  }
  EXPECT_EQ(reading, 0);
}

TEST(ReadAhead, FilesMayEndInAnyByte) {
  for (int last = 0; last < 256; ++last) {
    const std::string bytes = "abc" + std::string(1, static_cast<char>(last));
    const auto file = read_ahead(std::make_shared<FlakyFile>(bytes), 4, "x");
    EXPECT_EQ((*file->Read(4))->ToString(), bytes);
  }
}

TEST(ReadAhead, GivesTheBytesOfTheFile) {
  const std::string bytes = random_bytes(15'000'001);
  std::mt19937_64 random(7);
  const auto size = static_cast<int64_t>(bytes.size());
  const auto file = read_ahead(std::make_shared<FlakyFile>(bytes), size, "x");
  std::string read;
  std::string piece(100'000, '\0');
  for (;;) {
    const auto count = file->Read(static_cast<int64_t>(piece.size()), piece.data());
    ASSERT_TRUE(count.ok()) << count.status().ToString();
    if (*count == 0) break;
    read.append(piece, 0, static_cast<size_t>(*count));
  }
  EXPECT_EQ(read, bytes);
  for (int i = 0; i < 300; ++i) {
    const auto at = static_cast<int64_t>(random() % bytes.size()),
               length = static_cast<int64_t>(random() % 5'000'000);
    const auto part = file->ReadAt(at, length);
    ASSERT_TRUE(part.ok());
    ASSERT_EQ((*part)->ToString(), bytes.substr(static_cast<size_t>(at), static_cast<size_t>(length)));
  }
}

/// A file that gives no part before parts further on are asked for.
class WaitingFile : public FlakyFile {
 public:
  explicit WaitingFile(int64_t size) : FlakyFile(""), size_(size) {}
  arrow::Result<int64_t> ReadAt(int64_t position, int64_t size, void* to) override {
    std::unique_lock lock(mutex_);
    furthest_ = std::max(furthest_, position);
    asked_.notify_all();
    const int64_t ahead = std::min(position + 3 * size, size_ - size);
    // The bound only keeps a reader that asks for one part at a time from hanging.
    if (!alone) alone = !asked_.wait_for(lock, std::chrono::minutes(1), [&] { return furthest_ >= ahead; });
    std::memset(to, 'x', static_cast<size_t>(size));
    return size;
  }
  bool alone = false;  ///< a part was waited for while nobody asked for others

 private:
  const int64_t size_;
  std::mutex mutex_;
  std::condition_variable asked_;
  int64_t furthest_ = 0;
};

TEST(ReadAhead, RequestsTheNextPartsInAdvance) {
  const int64_t size = 48 << 20;
  const auto parts = std::make_shared<WaitingFile>(size);
  const auto file = read_ahead(parts, size, "x");
  std::string piece(1 << 20, '\0');
  for (int64_t read = 0; read < size; read += 1 << 20) ASSERT_TRUE(file->Read(1 << 20, piece.data()).ok());
  EXPECT_FALSE(parts->alone);
}

TEST(StoreRetry, RefusalsAreNotRepeated) {
  EXPECT_TRUE(may_pass(
      arrow::Status::IOError("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7")));
  EXPECT_TRUE(
      may_pass(arrow::Status::IOError("AWS Error SLOW_DOWN during PutObject operation (HTTP status 503)")));
  EXPECT_FALSE(may_pass(arrow::Status::IOError("AWS Error ACCESS_DENIED during ListObjectsV2 operation")));
  EXPECT_FALSE(may_pass(arrow::Status::IOError("Path does not exist (HTTP status 404)")));
  EXPECT_FALSE(may_pass(arrow::Status::NotImplemented("x")));
}

TEST(StoreRetry, AttemptsEndAfterATime) {
  ::setenv("SHEAF_STORE_SECONDS", "0.1", 1);
  int attempts = 0;
  const auto status = ask_store([&] {
    ++attempts;
    return arrow::Status::IOError("curlCode: 7, could not connect");
  });
  ::unsetenv("SHEAF_STORE_SECONDS");
  EXPECT_FALSE(status.ok());
  EXPECT_GT(attempts, 0);
}

TEST(StoreRetry, AStoreThatDoesNotAnswerIsReportedOnce) {
  static std::string said;
  static int times = 0;
  tell_of_waiting([](std::string_view text) {
    said = text;
    ++times;
  });
  int since = 0;  // attempts after it was said
  const auto status = ask_store([&] {
    since += times > 0;
    return since == 3 ? arrow::Status::OK() : arrow::Status::IOError("curlCode: 7, could not connect");
  });
  tell_of_waiting(nullptr);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(times, 1) << "not at every attempt";
  EXPECT_NE(said.find("could not connect; asking again for"), std::string::npos) << said;
}

}  // namespace
}  // namespace sheaf

#include "io/row_writer.h"

#include <gtest/gtest.h>

#include "io/describe_corpus.h"
#include "tests/io/parquet_sample.h"
#include "tests/io/temp_folder.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

Reject make_reject(const std::string& file, int64_t row, const std::string& id, const std::string& reason) {
  Reject reject;
  reject.place.file = file;
  reject.place.row = row;
  reject.id = id;
  reject.reason = reason;
  return reject;
}

TEST(RowWriter, WritesRowsAndRejectsUnderTheirNamesOnlyWhenFinished) {
  TempFolder folder;
  const std::string out = folder.path("deep/er/out");
  RowWriter writer(out);
  writer.row(ordered_json{{"id", 1}, {"a", "ü"}});
  writer.row(json{{"id", 2}});
  writer.reject(make_reject("c.jsonl", 7, "x", "the document is empty"));
  writer.flush();
  EXPECT_FALSE(std::filesystem::exists(out + "/rows.jsonl"));
  EXPECT_EQ(read_file(out + "/rows.jsonl.part"), "{\"id\":1,\"a\":\"ü\"}\n{\"id\":2}\n");
  writer.finish();
  EXPECT_EQ(read_file(out + "/rows.jsonl"), "{\"id\":1,\"a\":\"ü\"}\n{\"id\":2}\n");
  EXPECT_EQ(read_file(out + "/rejects.jsonl"),
            "{\"file\":\"c.jsonl\",\"row\":7,\"id\":\"x\",\"reason\":\"the document is empty\"}\n");
  EXPECT_FALSE(std::filesystem::exists(out + "/rows.jsonl.part"));
  EXPECT_EQ(writer.rows(), 2);
  EXPECT_EQ(writer.rejects(), 1);
}

TEST(RowWriter, KeepsFinishedRowsUnlessToldToReplace) {
  TempFolder folder;
  const std::string out = folder.path("out");
  { RowWriter(out).row(json{{"half", 1}}); }
  RowWriter first(out);  // an unfinished job is no reason to refuse
  first.row(json{{"a", 1}});
  first.finish();
  EXPECT_EQ(
      error_of([&] { RowWriter again(out); }),
      out + ": holds the rows of a finished job; choose another output.path or replace it with --restart");
  RowWriter second(out, true);
  second.row(json{{"a", 2}});
  EXPECT_EQ(read_file(out + "/rows.jsonl"), "{\"a\":1}\n")
      << "the old rows stay until the new ones are whole";
  second.finish();
  EXPECT_EQ(read_file(out + "/rows.jsonl"), "{\"a\":2}\n");
}

TEST(RowWriter, WritesTextThatIsNotUtf8) {
  TempFolder folder;
  RowWriter writer(folder.path("out"));
  writer.row(json{{"a", "x\xff y"}});
  writer.reject(make_reject("f", 1, "\xc3", "bad \xf0"));
  writer.finish();
  EXPECT_EQ(json::parse(read_file(folder.path("out/rows.jsonl")))["a"], "x\uFFFD y");
  EXPECT_EQ(json::parse(read_file(folder.path("out/rejects.jsonl")))["reason"], "bad \uFFFD");
}

TEST(RowWriter, ErrorsNameThePath) {
  TempFolder folder;
  folder.write("file", "x");
  EXPECT_TRUE(error_of([&] {
                RowWriter(folder.path("file/out"));
              }).starts_with(folder.path("file/out") + ": the folder cannot be made: "));
  std::filesystem::create_directories(folder.path("blocked/rows.jsonl.part"));
  EXPECT_TRUE(error_of([&] {
                RowWriter(folder.path("blocked"));
              }).starts_with(folder.path("blocked/rows.jsonl.part") + ": cannot be written: "));
  if (!std::filesystem::exists("/dev/full")) return;
  std::filesystem::create_directories(folder.path("full"));
  std::filesystem::create_symlink("/dev/full", folder.path("full/rows.jsonl.part"));
  try {
    RowWriter writer(folder.path("full"));
    for (int i = 0; i < 1000; ++i) writer.row(json{{"a", std::string(1000, 'x')}});
    FAIL() << "a full disk went unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(),
              folder.path("full/rows.jsonl.part") + ": the disk is full; free some space and run again");
    EXPECT_EQ(error.fault(), Fault::fatal);
  }
}

TEST(DescribeCorpus, TellsFormatRowsAndColumns) {
  TempFolder folder;
  const std::string lines =
      folder.write("a.jsonl", "{\"id\": 1, \"n\": null, \"text\": \"" + std::string(500, 'x') +
                                  "\"}\n\nbad\n"
                                  "{\"id\": 2, \"n\": [\"a\"], \"more\": {\"deep\": [1, 2, 3, 4, 5]}}\n");
  const ordered_json about = describe_corpus(lines);
  EXPECT_EQ(about["format"], "jsonl");
  EXPECT_EQ(about["files"], 1);
  EXPECT_EQ(about["rows"], 3);
  ASSERT_EQ(about["columns"].size(), 4u);
  EXPECT_EQ(about["columns"][1], (ordered_json{{"name", "n"}, {"type", "list of text"}}));
  EXPECT_LT(about["first"]["text"].get<std::string>().size(), 150u);

  write_parquet(folder.path("t.parquet"), {{"id", "int64", {1, 2}},
                                           {"text", "binary", {"a\xff", "b"}},
                                           {"list", "strings", {{"a", "b", "c", "d", "e"}, nullptr}}});
  const ordered_json table = describe_corpus(folder.path("t.parquet"));
  EXPECT_EQ(table["format"], "parquet");
  EXPECT_EQ(table["rows"], 2);
  EXPECT_EQ(table["columns"][0], (ordered_json{{"name", "id"}, {"type", "int64"}}));
  EXPECT_EQ(table["first"]["text"], "a");
  EXPECT_EQ(table["first"]["list"].size(), 4u);
  EXPECT_NO_THROW(table.dump());
  EXPECT_TRUE(error_of([&] { describe_corpus(folder.path("nothing")); }).ends_with("nothing: no such file"));
}

}  // namespace
}  // namespace sheaf

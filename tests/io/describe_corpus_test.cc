#include "io/corpus/describe_corpus.h"

#include <gtest/gtest.h>

#include "tests/errors.h"
#include "tests/files.h"
#include "tests/io/parquet_sample.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

TEST(DescribeCorpus, NamesFormatRowsAndColumns) {
  TempFolder folder;
  const std::string lines =
      folder.write("a.jsonl", "{\"id\": 1, \"n\": null, \"text\": \"" + std::string(500, 'x') +
                                  "\"}\n\nbad\n"
                                  "{\"id\": 2, \"n\": [\"a\"], \"more\": {\"deep\": [1, 2, 3, 4, 5]}}\n");
  const ordered_json about = describe_corpus(lines);
  EXPECT_EQ(about["format"], "jsonl");
  EXPECT_EQ(about["files"], 1);
  EXPECT_EQ(about["records"], 3);
  ASSERT_EQ(about["columns"].size(), 4u);
  EXPECT_EQ(about["columns"][1], (ordered_json{{"name", "n"}, {"type", "list of text"}}));
  EXPECT_LT(about["first"]["text"].get<std::string>().size(), 150u);
  EXPECT_EQ(about["unreadable"]["records"], 1);
  EXPECT_TRUE(about["unreadable"]["first"].get<std::string>().starts_with(lines + ":3: ")) << about.dump();

  write_parquet(folder.path("t.parquet"), {{"id", "int64", {1, 2}},
                                           {"text", "binary", {"a\xff", "b"}},
                                           {"list", "strings", {{"a", "b", "c", "d", "e"}, nullptr}}});
  const ordered_json table = describe_corpus(folder.path("t.parquet"));
  EXPECT_EQ(table["format"], "parquet");
  EXPECT_EQ(table["records"], 2);
  EXPECT_EQ(table["columns"][0], (ordered_json{{"name", "id"}, {"type", "int64"}}));
  EXPECT_EQ(table["first"]["text"], "a");
  EXPECT_EQ(table["first"]["list"].size(), 4u);
  EXPECT_NO_THROW(table.dump());
  EXPECT_EQ(error_of([&] { describe_corpus(folder.path("nothing")); }),
            "no such file or folder: " + folder.path("nothing"));
}

TEST(DescribeCorpus, CountsWhatWouldBeRejected) {
  TempFolder folder;
  const ordered_json good = describe_corpus(folder.write("good.csv", "id,text\n1,a\n2,b\n"));
  EXPECT_FALSE(good.contains("unreadable"));
  const std::string path = folder.write("bad.csv", "id,text\n1,a\n2,caf\xe9\n3,b,c\n");
  const ordered_json bad = describe_corpus(path);
  EXPECT_EQ(bad["records"], 3);
  EXPECT_EQ(bad["unreadable"]["records"], 2);
  const auto first = bad["unreadable"]["first"].get<std::string>();
  EXPECT_TRUE(first.starts_with(path + ":3: ")) << first;
  EXPECT_NE(first.find("iconv -f WINDOWS-1252"), std::string::npos) << first;
}

TEST(DescribeCorpus, DistinguishesRecordsFromOneObject) {
  for (const char* text : {"[1, 2]", " \n[{", "{\"a\": 1}\n{\"a\": 2}\n", "{\"a\": 1}\n\n{"})
    EXPECT_TRUE(begins_like_records(text)) << text;
  for (const char* text :
       {"", "  ", "{}", "{\"a\": 1}\n", "{\n  \"a\": 1\n}\n", "model", "{\"a\": [\n1]}\n{"})
    EXPECT_FALSE(begins_like_records(text)) << text;
  const TempFolder folder;
  EXPECT_EQ(wanted_format(folder.write("list.json", "[{\"a\": 1}]")), "jsonl");
  EXPECT_EQ(wanted_format(folder.write("tokenizer.json", "{}")), "");
  EXPECT_EQ(wanted_format(folder.write("table.csv", "a\n1\n")), "auto");
}

}  // namespace
}  // namespace sheaf

#include "io/corpus/describe_corpus.h"

#include <gtest/gtest.h>

#include "tests/io/parquet_sample.h"
#include "tests/io/temp_folder.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

TEST(DescribeCorpus, TellsFormatRowsAndColumns) {
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

}  // namespace
}  // namespace sheaf

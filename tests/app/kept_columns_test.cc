// Columns of the corpus that the rows repeat.
#include <gtest/gtest.h>

#include "io/base/table_file.h"
#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;

class KeptColumns : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("corpus.jsonl", R"({"sku":"a","title":"Oak tea","price":4.5,"url":"u/1","tags":["x",1]})"
                                   "\n"
                                   R"({"sku":"b","title":"Rye tea","price":null})"
                                   "\n");
    scratch_.write("schema.yaml", "categories: {Tea: [{name: Brand}, {name: url}]}\n");
    job_ = scratch_.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch_) +
                                          "}\ninput: {path: corpus.jsonl, id: sku, document: title, "
                                          "keep: [price, tags, title]}\n"
                                          "task: {kind: extract, schema: schema.yaml}\n"
                                          "method: {name: hpd, max_value_tokens: 2}\n"
                                          "engine: {device: cpu, window: 1}\noutput: {path: out}\n");
  }

  std::string error(const std::string& set) const {
    const Ran ran = run_sheaf(scratch_, "run " + job_ + " --quiet --set '" + set + "'");
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    return ran.err;
  }

  const TempFolder scratch_;
  std::string job_;
};

TEST_F(KeptColumns, RowsRepeatThem) {
  const Ran ran = run_sheaf(scratch_, "run " + job_ + " --quiet --set input.keep='[price, url, tags]'");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto rows = test::read_json_lines(read_text(scratch_.path("out/rows-00000.jsonl")));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["price"], 4.5);
  EXPECT_EQ(rows[0]["url"], "u/1");
  EXPECT_EQ(rows[0]["tags"], json({"x", 1}));
  EXPECT_TRUE(rows[0]["values"].contains("url")) << "the attribute is another thing";
  for (const char* column : {"price", "url", "tags"}) EXPECT_TRUE(rows[1].at(column).is_null()) << column;
}

TEST_F(KeptColumns, ParquetRowsRepeatThem) {
  const Ran ran = run_sheaf(scratch_, "run " + job_ + " --quiet --set output.format=parquet");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  TableFile file(scratch_.path("out/rows-00000.parquet"));
  std::vector<std::string> names;
  for (const auto& column : file.columns()) names.push_back(column.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"id", "category", "Brand", "url", "notes", "price", "tags", "title"}));
  file.select(names);
  const auto batch = file.next();
  ASSERT_TRUE(batch && batch->cells.size() == 2);
  EXPECT_EQ(batch->cells[0]["price"], "4.5") << "numbers of JSON lines have no one type";
  EXPECT_EQ(batch->cells[0]["tags"], "[\"x\",1]");
  EXPECT_EQ(batch->cells[1]["title"], "Rye tea");
  EXPECT_TRUE(batch->cells[1]["price"].is_null());
  // A Parquet corpus gives its types to the rows; these rows are one.
  const Ran again = run_sheaf(
      scratch_,
      "run " + job_ + " --quiet --set output.format=parquet --set output.path=" + scratch_.path("two") +
          " --set input.keep='[sku]' --set input.id=null --set input.path=" +
          scratch_.write("n.jsonl", R"({"sku": 7, "title": "Oak tea"})") + " --set output.tokens=true");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const Ran third = run_sheaf(
      scratch_, "run " + job_ +
                    " --quiet --set output.format=parquet --set output.path=" + scratch_.path("three") +
                    " --set 'input={path: " + scratch_.path("two/rows-00000.parquet") +
                    ", document: sku, keep: [Brand]}'");
  EXPECT_EQ(third.exit_code, 2);
  EXPECT_EQ(third.err.find("input.keep: input.keep"), std::string::npos) << third.err;
  const Ran plan =
      run_sheaf(scratch_, "plan " + job_ + " --set output.format=parquet --set 'input={path: " +
                              scratch_.path("two/rows-00000.parquet") + ", document: sku, keep: [Brand]}'");
  EXPECT_EQ(plan.exit_code, 2) << "a plan refuses what a run does";
  EXPECT_NE(plan.err.find("\"Brand\" is also an attribute of the schema"), std::string::npos) << plan.err;
  EXPECT_NE(third.err.find("input.keep: \"Brand\" is also an attribute of the schema"), std::string::npos)
      << third.err;
}

TEST_F(KeptColumns, ScoresIgnoreThem) {
  ASSERT_EQ(run_sheaf(scratch_, "run " + job_ + " --quiet --set output.format=parquet").exit_code, 0);
  const std::string gold =
      scratch_.write("gold.jsonl",
                     "{\"id\": \"a\", \"category\": \"Tea\", \"gold\": {\"Brand\": \"Oak\"}}\n{\"id\": "
                     "\"b\", \"category\": \"Tea\", \"gold\": {\"Brand\": \"Rye\"}}\n");
  const auto score = [&](const std::string& run) {
    const Ran ran =
        run_sheaf(scratch_, "score --metric attributes --json --quiet --gold " + gold + " --pred " + run);
    EXPECT_LE(ran.exit_code, 1) << ran.err;
    return json::parse(ran.out, nullptr, false);
  };
  const json with = score(scratch_.path("out"));
  ASSERT_EQ(run_sheaf(scratch_, "run " + job_ +
                                    " --quiet --set input.keep=null --set output.format=parquet "
                                    "--set output.path=" +
                                    scratch_.path("without"))
                .exit_code,
            0);
  json without = score(scratch_.path("without"));
  for (const char* key : {"micro_f1", "micro_precision"}) EXPECT_EQ(with[key], without[key]) << with.dump();
}

TEST_F(KeptColumns, ClashesWithOtherColumnsAreRefused) {
  EXPECT_NE(error("input.keep=[price, id]").find("input.keep: rows may have a \"id\" of their own; rename"),
            std::string::npos);
  EXPECT_NE(error("input.keep=[price, price]").find("\"price\" appears twice; remove one"),
            std::string::npos);
  EXPECT_NE(error("input.keep=prise").find("has no column \"prise\"; did you mean \"price\"?"),
            std::string::npos);
}

}  // namespace
}  // namespace sheaf

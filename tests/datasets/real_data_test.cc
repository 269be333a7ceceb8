// The datasets themselves, where they lie beside the project.
#include <algorithm>
#include <gtest/gtest.h>

#include "io/corpus.h"
#include "io/datasets/convert.h"
#include "io/datasets/gold.h"
#include "tests/io/temp_folder.h"

namespace sheaf {
namespace {

#define NEED(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent"

struct Counts {
  int64_t rows = 0, questions = 0, unanswerable = 0;
  bool operator==(const Counts&) const = default;
};

Counts convert_all(const std::string& format, const std::string& path) {
  const TempFolder folder;
  const std::string out = folder.path("corpus.parquet");
  const Converted done = convert_dataset(format, path, out, {}, [](const DatasetRow& row) {
    ADD_FAILURE() << row.place.file << ":" << row.place.row << ": " << row.error;
  });
  const auto gold = read_gold("sheaf", out);
  EXPECT_EQ(gold.size(), static_cast<size_t>(done.questions > 0 ? done.questions : done.rows));
  return {done.rows, done.questions, done.unanswerable};
}

TEST(RealData, Squad) {
  NEED("../shared/datasets/squad2/dev-v2.0.json");
  EXPECT_EQ(convert_all("squad", "../shared/datasets/squad2/dev-v2.0.json"), (Counts{1204, 11873, 5945}));
}

TEST(RealData, Race) {
  NEED("../shared/datasets/race/test");
  EXPECT_EQ(convert_all("race", "../shared/datasets/race/test"), (Counts{1407, 4934, 0}));
}

TEST(RealData, DocumentsWithAQuestion) {
  NEED("../shared/datasets/hotpotqa/hotpot-200.jsonl");
  EXPECT_EQ(convert_all("hotpotqa", "../shared/datasets/hotpotqa/hotpot-200.jsonl"), (Counts{200, 200, 0}));
  NEED("../shared/datasets/musique/musique-200.jsonl");
  EXPECT_EQ(convert_all("musique", "../shared/datasets/musique/musique-200.jsonl"), (Counts{200, 200, 0}));
}

TEST(RealData, TheSchemasOfTheProductsKnowEveryAttribute) {
  const std::vector<std::pair<std::string, int64_t>> files = {
      {"oa-mine/test", 491}, {"oa-mine/train", 1452}, {"ae-110k/test", 524}, {"ae-110k/train", 1568}};
  for (const auto& [name, rows] : files) {
    const std::string path = "../shared/datasets/" + name + ".jsonl";
    NEED(path);
    const std::string format = name.substr(0, name.find('/'));
    EXPECT_EQ(convert_all(format, path), (Counts{rows, 0, 0}));
    const Schema schema = read_schema("configs/schemas/" + format + ".yaml");
    for (const GoldAnswer& answer : read_gold(format, path)) {
      const Category* category = schema.find(answer.extra["category"].get<std::string>());
      ASSERT_NE(category, nullptr) << answer.extra["category"];
      for (const auto& [attribute, values] : answer.extra["gold"].items())
        EXPECT_TRUE(std::any_of(category->attributes.begin(), category->attributes.end(),
                                [&key = attribute](const Attribute& a) { return a.name == key; }))
            << category->name << ": " << attribute;
    }
  }
}

}  // namespace
}  // namespace sheaf

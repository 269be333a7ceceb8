// Every reader on damaged files: cut, flipped, keys dropped, words that parsers find interesting.
#include "tests/fuzz.h"

#include <gtest/gtest.h>

#include "io/datasets/dataset.h"
#include "io/datasets/gold.h"
#include "tests/datasets/samples.h"

namespace sheaf {
namespace {

const std::vector<std::string_view> kWords = {
    "null",          "[",    "]",    "{",   "}", "\"", ",", "1e999", "-1", "\n", "\\u0000", "[[[[[[[[",
    "{\"text\": 1}", "\"\"", "\xFF", "true"};

/// The text with one of its quoted keys renamed.
std::string without_a_key(std::string text, std::mt19937_64& random) {
  std::vector<size_t> keys;
  for (size_t at = 0; (at = text.find("\":", at)) != std::string::npos; ++at) keys.push_back(at);
  if (!keys.empty()) text[keys[random() % keys.size()] - 1] = '_';
  return text;
}

class DatasetFuzz : public testing::TestWithParam<size_t> {};

TEST_P(DatasetFuzz, NeverCrashesAndTellsEveryEntry) {
  const Sample& one = samples()[GetParam()];
  const TempFolder folder;
  int64_t opened = 0, refused = 0;
  fuzz([&](std::mt19937_64& random) {
    const std::string text =
        random() % 2 ? mutate(one.text, random, kWords) : without_a_key(one.text, random);
    const std::string path = write_sample(folder, one, text);
    try {
      const auto reader = open_dataset(one.format, path);
      ++opened;
      for (int rows = 0; const auto row = reader->next(); ++rows) {
        ASSERT_LT(rows, 1000) << text;
        ASSERT_GT(row->place.row, 0);
        ASSERT_NE(row->error.empty(), row->cells.empty());
        if (row->error.empty()) row->cells.dump();
      }
      read_gold(one.format, path);
    } catch (const Error& error) {
      ++refused;
      ASSERT_EQ(error.fault(), Fault::input) << error.what();
      ASSERT_NE(std::string(error.what()).find(folder.path()), std::string::npos) << error.what();
    }
    try {
      guess_dataset_format(path);
    } catch (const Error& error) {
      ASSERT_EQ(error.fault(), Fault::input) << error.what();
    }
  });
  EXPECT_GT(opened, 0);
  EXPECT_GT(refused, 0);
}

/// What the page of `sheaf review` downloads.
TEST(GoldFuzz, ReviewedValuesAreReadOrRefused) {
  const std::string lines =
      R"({"id": "a", "category": "Tea", "document": "Oak tea", "gold": {"Brand": "Oak", "Size": null, "Notes": ["x"]}}
{"id": 18446744073709551615, "category": "Tea", "document": "", "gold": {}, "wrong": {"Brand": ["Elm"], "Size": [null]}}
)";
  const TempFolder folder;
  int64_t read = 0, refused = 0;
  fuzz([&](std::mt19937_64& random) {
    const std::string text = random() % 2 ? mutate(lines, random, kWords) : without_a_key(lines, random);
    const std::string path = folder.write("gold.jsonl", text);
    try {
      for (const GoldAnswer& answer : read_gold("auto", path)) {
        if (!answer.extra.is_object() || !answer.extra.contains("gold")) continue;
        for (const auto& [attribute, values] : answer.extra["gold"].items())
          ASSERT_TRUE(values.is_array() || values.is_string());
        const nlohmann::json wrong = answer.extra.value("wrong", nlohmann::json::object());
        for (const auto& [attribute, values] : wrong.items()) ASSERT_TRUE(values.is_array());
      }
      ++read;
    } catch (const Error& error) {
      ++refused;
      ASSERT_EQ(error.fault(), Fault::input) << error.what();
    }
  });
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, DatasetFuzz, testing::Range(size_t{0}, samples().size()),
                         [](const auto& format) {
                           std::string name = samples()[format.param].format;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace sheaf

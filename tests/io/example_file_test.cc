// Files of examples: the forms that are read, and what is refused.
#include "io/corpus/example_file.h"

#include <gtest/gtest.h>

#include "tests/errors.h"
#include "tests/fuzz.h"

namespace sheaf {
namespace {

using nlohmann::json;

class ExampleFile : public testing::Test {
 protected:
  ExampleFile() {
    job_.task.kind = TaskKind::extract;
    job_.task.schema = "schema.yaml";
    job_.input.id = "sku";
    job_.input.category = "kind";
    job_.input.document = {"title", "text"};
  }

  Examples read(const std::string& text) {
    job_.task.examples.path = folder_.write("examples.jsonl", text);
    notices_.clear();
    return read_examples(job_, schema_, 100, notices_);
  }
  std::string error(const std::string& text) {
    std::string message = error_of([&] { read(text); });
    if (const size_t at = message.find(folder_.path() + "/"); at != std::string::npos)
      message.erase(at, folder_.path().size() + 1);
    return message;
  }

  TempFolder folder_;
  Job job_;
  std::vector<std::string> notices_;
  Schema schema_{{{"Tea", {{"Brand", ""}, {"Weight", "", ValueType::number}}}, {"Cup", {{"Size", ""}}}}};
};

TEST_F(ExampleFile, ReadsTheColumnsOfTheJob) {
  const Examples examples = read(
      R"({"kind": "Tea", "title": "Oak", "text": "2 g", "document": "no", "gold": {"Brand": "Oak", "Other": 1}})"
      "\n");
  ASSERT_EQ(examples.of("Tea").size(), 1u);
  EXPECT_EQ(examples.of("Tea")[0].document, "Oak\n2 g");
  EXPECT_EQ(examples.of("Tea")[0].gold["Brand"], "Oak");
  EXPECT_EQ(examples.positions, 100);
}

TEST_F(ExampleFile, ReadsTheColumnsThatSheafWrites) {
  const Examples examples =
      read(R"({"id": 7, "category": "Tea", "document": "Oak 2 g", "gold": {"Brand": null, "Weight": 2}})"
           "\n"
           R"({"id": 8, "category": "Cup", "document": "Cup", "gold": "{\"Size\": [\"small\"]}"})"
           "\n");
  ASSERT_EQ(examples.of("Tea").size(), 1u);
  EXPECT_EQ(examples.of("Tea")[0].document, "Oak 2 g");
  EXPECT_EQ(examples.of("Tea")[0].gold, json({{"Brand", json::array()}, {"Weight", {2}}}));
  EXPECT_EQ(examples.of("Cup")[0].gold, json({{"Size", {"small"}}}));
}

TEST_F(ExampleFile, ReadsADatasetAsDownloaded) {
  const Examples examples = read(
      R"({"input": "Oak 2 g", "category": "Tea", "target_scores": {"Brand": {"Oak": 1}, "Weight": {"n/a": 1}}})"
      "\n");
  ASSERT_EQ(examples.of("Tea").size(), 1u);
  EXPECT_EQ(examples.of("Tea")[0].gold, json({{"Brand", {"Oak"}}, {"Weight", {"n/a"}}}));
}

TEST_F(ExampleFile, UnmentionedAttributesMayCountAsAbsent) {
  const char* text = R"({"category": "Tea", "document": "Oak", "gold": {"Brand": "Oak"}})";
  EXPECT_FALSE(read(text).of("Tea")[0].gold.contains("Weight"));
  job_.task.examples.unmentioned_absent = true;
  EXPECT_EQ(read(text).of("Tea")[0].gold["Weight"], json::array());
  // Where a person found null wrong, an example must not show it.
  const char* reviewed =
      R"({"category": "Tea", "document": "Oak", "gold": {"Brand": "Oak"}, "wrong": {"Weight": [null]}})";
  EXPECT_FALSE(read(reviewed).of("Tea")[0].gold.contains("Weight"));
}

TEST_F(ExampleFile, SkipsExamplesWithoutUsableValues) {
  const Examples examples = read(R"({"category": "Mug", "document": "a", "gold": {"Brand": "Oak"}})"
                                 "\n"
                                 R"({"category": "Tea", "document": "b", "gold": {"Size": "small"}})"
                                 "\n"
                                 R"({"category": "Tea", "document": "c", "gold": {"Weight": "much"}})"
                                 "\n"
                                 R"({"category": "Tea", "document": "d", "gold": {"Weight": 3}})"
                                 "\n");
  EXPECT_EQ(examples.by_category.size(), 1u);
  ASSERT_EQ(examples.of("Tea").size(), 1u);
  EXPECT_EQ(examples.of("Tea")[0].document, "d");
  ASSERT_EQ(notices_.size(), 3u);
  EXPECT_EQ(
      notices_[0],
      folder_.path("examples.jsonl") +
          ": 1 gold value left out, because the category in the schema has no such attribute: \"Size\" of "
          "Tea");
  EXPECT_EQ(notices_[1], folder_.path("examples.jsonl") +
                             ": 1 gold value that the type of its attribute does not hold, left out of the "
                             "examples: \"much\" of \"Weight\"");
  EXPECT_EQ(notices_[2], folder_.path("examples.jsonl") +
                             " has no examples for 1 of 2 categories: Cup; their prompts show none");
}

TEST_F(ExampleFile, GoldOfAnIdAloneIsJoinedWithTheCorpus) {
  job_.input.path =
      folder_.write("corpus.jsonl",
                    "{\"sku\": \"a\", \"kind\": \"Tea\", \"title\": \"Oak\", \"text\": \"2 g\"}\n"
                    "{\"sku\": 7, \"kind\": \"Cup\", \"title\": \"A small cup\", \"text\": \"\"}\n");
  const Examples examples = read(
      "{\"id\": \"a\", \"gold\": {\"Brand\": \"Oak\"}}\n"
      "{\"sku\": \"7\", \"gold\": {\"Size\": \"small\"}}\n"
      "{\"id\": \"b\", \"gold\": {\"Brand\": \"Elm\"}}\n");
  ASSERT_EQ(examples.of("Tea").size(), 1u);
  EXPECT_EQ(examples.of("Tea")[0].document, "Oak\n2 g");
  ASSERT_EQ(examples.of("Cup").size(), 1u);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_EQ(notices_[0], folder_.path("examples.jsonl") + ": 1 example left out, because no record of " +
                             job_.input.path + " has the id: b");
  EXPECT_EQ(error("{\"id\": \"c\", \"gold\": {\"Brand\": \"Elm\"}}"),
            "examples.jsonl: task.examples: no record of " + job_.input.path +
                " has the id of an example, such as c");
}

TEST_F(ExampleFile, NamesTheColumnThatIsMissingFromTheFormThatTheFileHas) {
  EXPECT_NE(error(R"({"document": "Oak", "gold": {"Brand": "Oak"}})").find("column \"category\" is missing"),
            std::string::npos);
  EXPECT_EQ(read(R"({"kind": "Tea", "title": "Oak", "gold": {"Brand": "Oak"}})").of("Tea").size(), 1u)
      << "a part of the document may be missing";
}

TEST_F(ExampleFile, RefusesWhatIsBroken) {
  EXPECT_EQ(error(R"({"category": "Tea", "document": "a", "gold": []})"),
            "examples.jsonl:1: task.examples: \"gold\" is not an object");
  EXPECT_EQ(error(R"({"category": "Tea", "document": "a"})"), "examples.jsonl:1: task.examples: no \"gold\"");
  EXPECT_EQ(error("\n"
                  R"({"category": "Tea", "document": " ", "gold": {}})"),
            "examples.jsonl:2: task.examples: the document is empty");
  EXPECT_EQ(error(R"({"kind": "Tea", "gold": {}})"),
            "examples.jsonl:1: task.examples: column \"title\" is missing");
  EXPECT_EQ(error(R"({"category": "Mug", "document": "a", "gold": {"Brand": "Oak"}})"),
            "examples.jsonl: task.examples: no record has a category of schema.yaml: found \"Mug\", but the "
            "schema has Tea, Cup");
  const std::string much = error(R"({"category": "Tea", "document": "a", "gold": {"Weight": "much"}})");
  EXPECT_TRUE(much.starts_with(
      "examples.jsonl: task.examples: no record gives an attribute of its category in schema.yaml a value; "))
      << much;
  EXPECT_TRUE(much.ends_with("\"much\" of \"Weight\"")) << much;
  EXPECT_EQ(error("\n"),
            "examples.jsonl: task.examples: the file is empty; name records with a \"gold\" column");
}

TEST_F(ExampleFile, RefusesValuesOfOtherKinds) {
  const auto refused = [&](const std::string& value) {
    return error(R"({"category": "Tea", "document": "a", "gold": {"Brand": )" + value + "}}");
  };
  EXPECT_EQ(refused(R"([["a"]])"),
            "examples.jsonl:1: task.examples: \"gold\": attribute \"Brand\" has a list in a list; entries "
            "are texts, "
            "numbers or objects");
  EXPECT_NE(refused(R"({"a": 1})").find("1 gold value that the type of its attribute does not hold"),
            std::string::npos);
}

TEST_F(ExampleFile, LeavesOutSpansThatTheDocumentDoesNotHold) {
  schema_.categories[0].attributes[0].type = ValueType::span;
  job_.task.examples.unmentioned_absent = true;
  const Examples examples =
      read(R"({"category": "Tea", "document": "Oak 2 g", "gold": {"Brand": "Elm", "Weight": 2}})"
           "\n"
           R"({"category": "Tea", "document": "Elm", "gold": {"Brand": "elm", "Weight": ""}})"
           "\n"
           R"({"category": "Tea", "document": "Fir", "gold": {"Brand": "Elm"}})");
  ASSERT_EQ(examples.of("Tea").size(), 2u);
  for (const Example& example : examples.of("Tea"))
    EXPECT_EQ(example.gold, example.document == "Elm" ? json({{"Brand", "Elm"}, {"Weight", json::array()}})
                                                      : json({{"Weight", {2}}}));
}

TEST_F(ExampleFile, AFileWithoutGoldAnswersIsRefusedWithWhatToName) {
  job_.task.examples.path = folder_.write("notes.txt", "[]");
  EXPECT_EQ(
      error_of([&] { read_examples(job_, schema_, 100, notices_); }),
      folder_.path("notes.txt") +
          ": the file has no gold answers; task.examples must name records with a \"gold\" column (.jsonl, "
          ".csv or .parquet), or oa-mine or ae-110k as downloaded");
}

TEST_F(ExampleFile, FuzzedFilesAreReadOrRefused) {
  const std::vector<std::string> seeds = {
      R"({"kind": "Tea", "title": "Oak", "text": "2 g", "gold": {"Brand": "Oak", "Weight": [2, "2 g"]}})"
      "\n"
      R"({"kind": "Cup", "title": "Elm", "text": "small", "gold": {"Size": null}})"
      "\n",
      R"({"id": 7, "category": "Tea", "document": "Oak 2 g", "gold": "{\"Brand\": [\"Oak\"]}"})"
      "\n",
      R"({"input": "Oak 2 g", "category": "Tea", "target_scores": {"Brand": {"Oak": 1}, "Weight": {"n/a": 1}}})"
      "\n"};
  fuzz_target("example_file", seeds, kJsonWords, [&](const std::string& text) {
    for (const auto& [category, examples] : read(text).by_category) {
      ASSERT_NE(schema_.find(category), nullptr);
      for (const Example& example : examples) ASSERT_FALSE(example.document.empty());
    }
  });
}

}  // namespace
}  // namespace sheaf

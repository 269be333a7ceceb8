#include "core/metrics/judge.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/metrics/metric.h"

namespace sheaf {
namespace {

TEST(Judge, IsAskedAsInThePaper) {
  const std::string prompt = judge_prompt({{"Brand", "Who makes it"}, {"Size", ""}}, "Otter kettle, 1.7 l",
                                          {{"Brand", "Otter \"Pro\""}, {"Size", std::nullopt}});
  EXPECT_TRUE(prompt.starts_with(
      "You are an expert at evaluating product details.\n\nConsider the following product attributes:\n\n"
      "Brand: Who makes it\nSize\n\nAn existing system"));
  EXPECT_TRUE(prompt.ends_with(
      "Input product:\n\nOtter kettle, 1.7 l\n\nExtracted Values:\n\n{\n  \"Brand\": \"Otter "
      "\\\"Pro\\\"\",\n  \"Size\": null\n}\n"));
}

TEST(Judge, RepliesAreReadFromTheirLastResult) {
  const auto judgements = read_judgements(
      "Brand: The value \"x\" is correct because <result> says so.\n<result>{\"Brand\": \"correct\", "
      "\"Size\": "
      "\"correct null\"}</result> Done.");
  EXPECT_EQ(judgements.at("Brand"), "correct");
  EXPECT_EQ(judgements.at("Size"), "correct null");
  EXPECT_EQ(read_judgements("<result>{}").size(), 0U) << "cut short after the object";
}

TEST(Judge, BadRepliesAreRefusedWithAReason) {
  const auto reason = [](const char* reply) -> std::string {
    try {
      read_judgements(reply);
    } catch (const BadText& why) {
      return why.what();
    }
    return "none";
  };
  EXPECT_NE(reason("no tags").find("no <result>"), std::string::npos);
  EXPECT_NE(reason("<result>{\"a\": </result>").find("not a JSON object"), std::string::npos);
  EXPECT_NE(reason("<result>{\"a\": \"right\"}</result>").find("\"a\" is judged \"right\""),
            std::string::npos);
  EXPECT_NE(reason("<result>{\"a\": 1}</result>").find("not one of the five"), std::string::npos);
}

TEST(Judge, CountsAsInThePaper) {
  std::vector<MetricItem> items;
  const auto add = [&](const char* word, int times) {
    for (int i = 0; i < times; ++i)
      items.push_back({std::to_string(items.size()), "", "", "", std::vector<std::string>{word}, {}});
  };
  add("correct", 6);
  add("correct null", 2);
  add("incorrect", 1);
  add("missing", 3);
  add("hallucination", 1);
  const Scores scores = score_items(find_metric("llm-f1"), items);
  const double precision = 8.0 / 10, recall = 8.0 / 12;  // (C + CN) / (C + CN + H + I), … + M + I
  EXPECT_DOUBLE_EQ(scores.values[1], precision);
  EXPECT_DOUBLE_EQ(scores.values[2], recall);
  EXPECT_DOUBLE_EQ(scores.values[0], 2 * precision * recall / (precision + recall));
  EXPECT_EQ(scores.values[3], 6);
  EXPECT_EQ(scores.values[7], 1);
}

}  // namespace
}  // namespace sheaf

// What a row says beyond what its task makes of the answers, and rows of documents asked part by part.
#include "core/task/item_row.h"

#include <gtest/gtest.h>

namespace sheaf {
namespace {

using nlohmann::ordered_json;

TEST(PartRows, AValueIsThatOfThePartThatFoundItBest) {
  const std::vector<ordered_json> rows = {
      {{"id", 1},
       {"category", "Tea"},
       {"values", {{"Brand", nullptr}, {"Weight", 2}, {"Flavours", {"mint"}}, {"Origin", nullptr}}},
       {"notes", {{"Brand", "cut"}, {"Origin", "first"}}}},
      {{"id", 1},
       {"category", "Tea"},
       {"values", {{"Brand", "Oak"}, {"Weight", 3}, {"Flavours", {"lime", "mint"}}, {"Origin", nullptr}}},
       {"notes", {{"Weight", "rounded"}}}},
      {{"id", 1},
       {"category", "Tea"},
       {"values",
        {{"Brand", "Elm"}, {"Weight", nullptr}, {"Flavours", ordered_json::array()}, {"Origin", nullptr}}}}};
  const std::vector<std::vector<double>> scores = {
      {-0.1, -0.5, -1, -1}, {-0.9, -0.2, -2, -0.1}, {-0.3, -0.1, -0.1, -0.1}};
  EXPECT_EQ(
      merge_part_rows(rows, scores),
      (ordered_json{
          {"id", 1},
          {"category", "Tea"},
          {"values", {{"Brand", "Elm"}, {"Weight", 3}, {"Flavours", {"mint", "lime"}}, {"Origin", nullptr}}},
          {"notes", {{"Weight", "rounded"}, {"Origin", "first"}}}}));
}

TEST(PartRows, WhatIsSaidOfValuesGoesWithThem) {
  const auto row = [](const char* brand, const ordered_json& logprobs, const ordered_json& raw) {
    return ordered_json{{"id", 1},
                        {"category", "Tea"},
                        {"values", {{"Brand", brand ? ordered_json(brand) : ordered_json()}}},
                        {"logprobs", logprobs},
                        {"raw", raw}};
  };
  // One attribute, an answer of its own.
  const std::vector<ordered_json> own = {row(nullptr, {{"Brand", -1.0}}, {{"Brand", " null"}}),
                                         row("Oak", {{"Brand", -2.0}}, {{"Brand", " \"Oak\""}})};
  EXPECT_EQ(merge_part_rows(own, {{-0.1}, {-0.2}}), own[1]);
  // Whole objects.
  EXPECT_EQ(merge_part_rows({row(nullptr, -1.0, "a"), row("Oak", -2.0, "b")}, {{-0.1}, {-0.2}}),
            row("Oak", -3.0, "a\nb"));
}

TEST(PartRows, AnAnswerIsThatOfThePartThatFoundItBest) {
  const auto row = [](const char* first, const char* second) {
    const auto text = [](const char* answer) { return answer ? ordered_json(answer) : ordered_json(); };
    return ordered_json{
        {"id", 7},
        {"answers", {{{"id", "a"}, {"answer", text(first)}}, {{"id", "b"}, {"answer", text(second)}}}}};
  };
  const std::vector<ordered_json> rows = {row(nullptr, "Rome"), row("1066", "Oslo")};
  EXPECT_EQ(merge_part_rows(rows, {{-0.1, -0.2}, {-3, -0.4}}), row("1066", "Rome"));
  const std::vector<ordered_json> flat = {{{"id", 7}, {"answer", nullptr}}, {{"id", 7}, {"answer", "1066"}}};
  EXPECT_EQ(merge_part_rows(flat, {{-0.1}, {-3}}), flat[1]);
}

/// Writes how many answers it got and what they begin with.
class EchoTask : public Task {
 public:
  std::string bin_name(const Item&) const override { return ""; }
  ItemParts parts(const Item&) override { return {}; }
  ordered_json row(const Item& item, const std::vector<Answer>& answers) const override {
    ordered_json row{{"id", item.id}, {"answers", ordered_json::array()}};
    for (const Answer& answer : answers) row["answers"].push_back({{"answer", answer.tokens[0]}});
    return row;
  }
};

TEST(ItemRow, AddsWhatTheJobAsksFor) {
  Item item;
  item.id = "x";
  Outcome outcome;
  outcome.document_tokens = 90;
  outcome.seconds = 1.5;
  for (const TokenId token : {5, 6, 7, 8})
    outcome.answers.push_back({{token, 1}, Ending::delimiter, -token * 0.5});
  Job::Output output;
  const ordered_json plain{{"id", "x"},
                           {"answers", {{{"answer", 5}}, {{"answer", 6}}, {{"answer", 7}}, {{"answer", 8}}}}};
  EXPECT_EQ(item_row(EchoTask(), item, outcome, output), plain);
  output.tokens = output.timing = true;
  outcome.cut_tokens = 30;
  ordered_json more = plain;
  more["cut_tokens"] = 30;
  more["document_tokens"] = 90;
  more["answer_tokens"] = 8;
  more["seconds"] = 1.5;
  EXPECT_EQ(item_row(EchoTask(), item, outcome, output), more);
  outcome.parts = 2;
  outcome.cut_tokens = 0;
  const ordered_json merged = item_row(EchoTask(), item, outcome, {});
  EXPECT_EQ(merged,
            (ordered_json{{"id", "x"}, {"answers", {{{"answer", 5}}, {{"answer", 6}}}}, {"parts", 2}}));
}

}  // namespace
}  // namespace sheaf

#include "io/run_folder/row_line.h"

#include <cmath>
#include <gtest/gtest.h>

namespace sheaf {
namespace {

using Texts = std::vector<std::string>;

RowAnswer full_answer() {
  RowAnswer answer{"B", "cut"};
  answer.option = "two";
  answer.logprob = -0.5;
  answer.raw = " B\n";
  return answer;
}

struct Case {
  Row row;
  std::string line;
};

std::vector<Case> make_cases() {
  RowAnswer turn{"Hello"};
  turn.finish = Finish::length;
  RowAnswer brand{"Oak"}, weight{2.5, "rounded"};
  brand.logprob = weight.logprob = -1;
  brand.raw = weight.raw = "r";
  RowAnswer sure{"Oak"};
  sure.confidence = 0.5;
  sure.null_margin = -1.5;
  RowAnswer asked{"Oak"};
  asked.confidence = 0.75;
  ExtractedValues whole{"Tea", {{"Sizes", {Texts{"8", "9"}}}, {"Weight", {int64_t{-3}}}}};
  whole.logprob = -4;
  whole.raw = "{}";
  Row facts{"x", RowAnswer{}};
  facts.parts = 2;
  facts.cut_tokens = 3;
  facts.document_tokens = 40;
  facts.answer_tokens = 5;
  facts.seconds = 0.25;
  Row split{1, ExtractedValues{"Tea", {{"Brand", brand}, {"Weight", weight}}}};
  split.parts = 2;
  RowAnswer placed{"Oak"}, colors{Texts{"red", "blue"}}, unplaced{"Pine"}, none;
  placed.spans = {RowSpan{"title", 0, 3}};
  colors.spans = {RowSpan{"description", 4, 7}, std::nullopt};
  unplaced.spans.emplace(1);
  none.spans.emplace();
  RowAnswer unsure{2.5, "rounded"};
  unsure.spans = {RowSpan{"title", 4, 7}};
  RowAnswer size{"S"};
  size.confidence = 0.5;
  const RowObject first{{{"size", size}, {"price", unsure}}},
      second{{{"size", {"M"}}, {"tags", {Texts{"new"}}}, {"box", {RowObject{{{"wide", {true}}}}}}}};
  const RowAnswer variants{std::vector<RowObject>{first, second}, "the list was cut"};
  return {
      {{1, ExtractedValues{"Tea", {{"No. 1", {"x"}}, {"variants", variants}}}},
       R"({"id":1,"category":"Tea","values":{"No. 1":"x","variants":[{"size":"S","price":2.5},{"size":"M",)"
       R"("tags":["new"],"box":{"wide":true}}]},"notes":{"variants":"the list was cut",)"
       R"("variants[0].price":"rounded"},"confidence":{"variants[0].size":0.5},)"
       R"("spans":{"variants[0].price":{"column":"title","start":4,"end":7}}})"},
      {{1,
        ExtractedValues{"Tea", {{"Brand", placed}, {"Colors", colors}, {"Wood", unplaced}, {"Size", none}}}},
       R"({"id":1,"category":"Tea","values":{"Brand":"Oak","Colors":["red","blue"],"Wood":"Pine","Size":null},)"
       R"("spans":{"Brand":{"column":"title","start":0,"end":3},"Colors":[{"column":"description","start":4,)"
       R"("end":7},null],"Wood":null,"Size":null}})"},
      {{7, full_answer()},
       R"({"id":7,"answer":"B","option":"two","note":"cut","logprob":-0.5,"raw":" B\n"})"},
      {{"d", turn}, R"({"id":"d","answer":"Hello","finish":"length"})"},
      {{1, std::vector<QuestionAnswer>{{"q", {"yes"}}, {nullptr, {}}}},
       R"({"id":1,"answers":[{"id":"q","answer":"yes"},{"id":null,"answer":null}]})"},
      {{1, ExtractedValues{"Tea", {{"Brand", brand}, {"Weight", weight}}}},
       R"({"id":1,"category":"Tea","values":{"Brand":"Oak","Weight":2.5},"notes":{"Weight":"rounded"},)"
       R"("logprobs":{"Brand":-1.0,"Weight":-1.0},"raw":{"Brand":"r","Weight":"r"}})"},
      {split, R"({"id":1,"category":"Tea","values":{"Brand":"Oak","Weight":2.5},"logprobs":{"Brand":-1.0,)"
              R"("Weight":-1.0},"raw":{"Brand":"r","Weight":"r"},"notes":{"Weight":"rounded"},"parts":2})"},
      {{1, ExtractedValues{"Tea", {{"Brand", sure}, {"Size", {}}}}},
       R"({"id":1,"category":"Tea","values":{"Brand":"Oak","Size":null},"confidence":{"Brand":0.5},)"
       R"("null_margins":{"Brand":-1.5}})"},
      {{2, asked}, R"({"id":2,"answer":"Oak","confidence":0.75})"},
      {{1, whole},
       R"({"id":1,"category":"Tea","values":{"Sizes":["8","9"],"Weight":-3},"logprobs":-4.0,"raw":"{}"})"},
      {facts, R"({"id":"x","answer":null,"parts":2,"cut_tokens":3,"document_tokens":40,"answer_tokens":5,)"
              R"("seconds":0.25})"},
      {{1, RowAnswer{uint64_t{1} << 63}}, R"({"id":1,"answer":9223372036854775808})"},
  };
}

TEST(RowLine, IsReadBackAsTheRow) {
  for (const Case& c : make_cases()) {
    EXPECT_EQ(row_line(c.row), c.line);
    const auto read = read_row(c.line);
    ASSERT_TRUE(read) << c.line;
    EXPECT_TRUE(*read == c.row) << c.line;
  }
}

TEST(RowLine, ValuesThatJsonCannotHoldAreReplaced) {
  RowAnswer answer{"x\xff"};
  answer.logprob = -INFINITY;
  const std::string line = row_line({1, answer});
  EXPECT_EQ(line, "{\"id\":1,\"answer\":\"x\uFFFD\",\"logprob\":null}");
  const auto read = read_row(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(row_line(*read), line);
}

TEST(RowLine, OtherLinesAreRefused) {
  for (const char* line : {
           "",
           "{",
           "7",
           "[]",
           "null",
           R"({"answer":"a"})",
           R"({"id":1})",
           R"({"id":1,"answer":{}})",
           R"({"id":1,"answer":true})",
           R"({"id":1,"answer":[1]})",
           R"({"id":1,"answer":"a","note":1})",
           R"({"id":1,"answer":"a","logprob":"x"})",
           R"({"id":1,"answers":{}})",
           R"({"id":1,"answers":[7]})",
           R"({"id":1,"answers":[{"answer":"a"}]})",
           R"({"id":1,"values":{"a":1}})",
           R"({"id":1,"category":"c","values":[]})",
           R"({"id":1,"category":"c","values":{"a":1},"notes":{"a":1}})",
           R"({"id":1,"category":"c","values":{"a":1},"raw":7})",
           R"({"id":1,"category":"c","values":{"a":1},"spans":{"a":[]}})",
           R"({"id":1,"category":"c","values":{"a":1},"spans":{"a":{"column":1,"start":0,"end":1}}})",
           R"({"id":1,"category":"c","values":{"a":[{"b":1},2]}})",
           R"({"id":1,"category":"c","values":{"a":[2,{"b":1}]}})",
           R"({"id":1,"category":"c","values":{"a":[[1]]}})",
           R"({"id":1,"category":"c","values":{"a":{"b":1}},"notes":{"a.b":1}})",
           R"({"id":1,"answer":"a","parts":"2"})",
       })
    EXPECT_FALSE(read_row(line)) << line;
}

}  // namespace
}  // namespace sheaf

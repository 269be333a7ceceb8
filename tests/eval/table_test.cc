// The table of an evaluation and the view of differences, from made-up figures.
#include <gtest/gtest.h>

#include "core/eval/differences.h"
#include "core/eval/eval_table.h"
#include "tests/task/well_formed.h"

namespace sheaf {
namespace {

EvalRow row(const std::string& method, double throughput) {
  EvalRow row;
  row.model = "m";
  row.dataset = "d";
  row.method = method;
  row.unit = "questions";
  row.count = 12;
  row.metric = "squad";
  row.value = "f1";
  row.best = 100;
  row.usd_per_hour = 3.6;
  row.own.throughput = throughput;
  row.own.seconds = 12 / throughput;
  row.own.quality = 64.25;
  row.interval = Interval{60, 68.5};
  return row;
}

EvalTable table() {
  EvalTable table;
  table.name = "A <table> & more";
  table.baseline = "standard";
  table.paper = "Paper, table 9";
  table.notes = {"One | note."};
  table.rows = {row("standard", 2), row("packed", 8)};
  table.rows[1].own.exact_match_percent = 97.5;
  table.rows[1].p_value = 0.0312;
  table.rows[1].paper.throughput = 62.04;
  set_rates(table);
  return table;
}

TEST(EvalTable, RatesAreAgainstTheBaselineAndThePrice) {
  const EvalTable made = table();
  EXPECT_DOUBLE_EQ(*made.rows[0].own.speedup, 1);
  EXPECT_DOUBLE_EQ(*made.rows[1].own.speedup, 4);
  EXPECT_DOUBLE_EQ(*made.rows[1].own.usd_per_1k, 0.125) << "1,000 questions take 125 s of $3.6 an hour";
  EvalTable alone = table();
  alone.rows.erase(alone.rows.begin());
  alone.rows[0].own.speedup.reset();
  alone.rows[0].usd_per_hour = 0;
  alone.rows[0].own.usd_per_1k.reset();
  set_rates(alone);
  EXPECT_FALSE(alone.rows[0].own.speedup) << "there is no baseline";
  EXPECT_FALSE(alone.rows[0].own.usd_per_1k) << "there is no price";
}

TEST(EvalTable, TextIsAlignedWithFiguresOfThePaper) {
  EXPECT_EQ(eval_text(table()),
            "model  dataset  method     n  throughput  paper   quality         95 %      p  EM %  speed-up   "
            " $/1k\n"
            "m      d        standard  12       2 q/s         f1 64.25  60.00-68.50                  1.00x  "
            "0.5000\n"
            "m      d        packed    12       8 q/s  62.04  f1 64.25  60.00-68.50  0.031  97.5     4.00x  "
            "0.1250\n"
            "One | note.\n");
}

TEST(EvalTable, ScoresHaveOneScale) {
  EvalTable made = table();
  EvalRow& share = made.rows[1];  // of a metric from 0 to 1
  share.best = 1;
  share.own.quality = 0.6425;
  share.interval = Interval{0.6, 0.685};
  share.paper.quality = 0.649;
  share.paper_digits["quality"] = 3;
  share.own.llm_f1 = 0.5;
  const std::string text = eval_text(made), page = eval_html(made);
  for (const std::string& shown : {text, page}) {
    EXPECT_NE(shown.find("f1 64.25"), shown.rfind("f1 64.25")) << shown;
    EXPECT_NE(shown.find("60.00-68.50"), shown.rfind("60.00-68.50")) << shown;
    for (const char* cell : {"64.9", "50.00"}) EXPECT_NE(shown.find(cell), std::string::npos) << cell;
    EXPECT_EQ(shown.find("0.6"), std::string::npos) << shown;
  }
  EXPECT_EQ(eval_json(made)["rows"][1]["quality"], 0.6425) << "data keep the metric's units";
}

TEST(EvalTable, MarkdownHasAsManyCellsInEveryLine) {
  const std::string text = eval_markdown(table());
  EXPECT_NE(text.find("| m | d | packed | 12 | 8 q/s | 62.04 | f1 64.25 |"), std::string::npos) << text;
  std::istringstream lines(text.substr(text.find('|')));
  std::string line;
  for (int i = 0; i < 4 && std::getline(lines, line); ++i)
    EXPECT_EQ(std::count(line.begin(), line.end(), '|'), 13) << line;
}

TEST(EvalTable, CsvAndJsonHaveTheFiguresInFull) {
  EvalTable made = table();
  made.rows[0].model = "a \"b\", c";
  const std::string csv = eval_csv(made);
  std::istringstream lines(csv);
  std::string head, first, second;
  std::getline(lines, head);
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_TRUE(first.starts_with(
      "\"a \"\"b\"\", c\",d,standard,questions,12,0,0,squad,f1,2,6,64.25,,,1,0.5,,60,68.5,,"))
      << first;
  EXPECT_EQ(std::count(head.begin(), head.end(), ','), std::count(second.begin(), second.end(), ','));
  const auto json = eval_json(made);
  EXPECT_EQ(json["rows"][1]["speedup"], 4.0);
  EXPECT_EQ(json["rows"][1]["paper"]["throughput"], 62.04);
  EXPECT_EQ(json["rows"][0].count("paper"), 0u);
  EXPECT_EQ(json["rows"][0]["quality_interval"], (std::vector<double>{60, 68.5}));
}

TEST(EvalTable, NamesMakeNoRowsCellsFormulasOrTags) {
  EvalTable made = table();
  made.name = "A\n# forged";
  made.notes = {"a\n| b |", "\x1b[2J"};
  made.rows[0].model = "=1+1";
  made.rows[0].dataset = "a\n| m | d \\";
  made.rows[0].method = "<script>";
  const std::string text = eval_text(made), markdown = eval_markdown(made), csv = eval_csv(made);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_TRUE(markdown.starts_with("# A\\\\n# forged\n\n| model |")) << markdown;
  EXPECT_NE(markdown.find("| =1+1 | a\\\\n\\| m \\| d \\\\ | \\<script> | 12 |"), std::string::npos)
      << markdown;
  EXPECT_NE(markdown.find("\na\\\\n\\| b \\|\n"), std::string::npos) << markdown;
  EXPECT_NE(csv.find("\r\n'=1+1,\"a\n| m | d \\\",<script>,questions,"), std::string::npos) << csv;
  EXPECT_EQ(test::xml_fault(eval_html(made)), "");
  EXPECT_EQ(eval_html(made).find("<script"), std::string::npos);
}

TEST(EvalTable, PagesAreWellFormed) {
  const std::string page = eval_html(table());
  EXPECT_EQ(test::xml_fault(page), "");
  EXPECT_NE(page.find("A &lt;table&gt; &amp; more"), std::string::npos);
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
  const DifferencePair pair{
      "m", "d", "standard", "packed", 3, 2, {{"q<1>", "The & mill", "When?", {}, {"1802", {}}, {"<b>", {}}}}};
  const std::string differences = differences_html("x & y", {pair});
  EXPECT_EQ(test::xml_fault(differences), "");
  EXPECT_NE(differences.find("2 of 3 answers differ; the first 1 are shown"), std::string::npos);
}

TEST(Differences, AnswersForgeNoLines) {
  const DifferencePair pair{"m\n",
                            "d",
                            "standard",
                            "packed",
                            3,
                            1,
                            {{"q\x1b", "c\nid x", "q\nid x", {}, {"1\nid x", {}}, {"2\nid x", {}}}}};
  for (const size_t columns : {40u, 100u}) {
    const std::string text = differences_text(pair, columns);
    EXPECT_EQ(text.find("\nid x"), std::string::npos) << text;
    EXPECT_NE(text.find("\nid          q\\x1b\n"), std::string::npos) << text;
    EXPECT_NE(text.find("standard: 1\\nid x"), std::string::npos) << text;
  }
}

TEST(Differences, AnExcerptLiesAroundTheReference) {
  const std::string text = std::string(300, 'a') + " Arn 1802 " + std::string(300, 'b');
  EXPECT_EQ(excerpt("short", {"x"}, 10), "short");
  EXPECT_EQ(excerpt(text, {"none"}, 5), "aaaaa…");
  EXPECT_EQ(excerpt(text, {"", "1802"}, 10), "…rn 1802 bb…");
  EXPECT_EQ(excerpt("ééééé", {}, 5), "éé…") << "not inside a letter";
  EXPECT_EQ(excerpt(text, {std::string(20, 'b')}, 4), "…bbbb…");
}

TEST(Differences, TextStandsSideBySide) {
  DifferencePair pair{"m", "d", "standard", "ippd", 28, 1, {}};
  pair.shown.push_back({"q1",
                        "The mill was built in 1802.",
                        "When was it built?",
                        std::vector<std::string>{"1802"},
                        {"in 1802", {{"f1", 0.5}}},
                        {"(null)", {{"f1", 0}}}});
  const std::string text = differences_text(pair, 70);
  EXPECT_TRUE(text.starts_with("m, d: standard and ippd differ in 1 of 28\n")) << text;
  EXPECT_NE(text.find("references  1802\n"), std::string::npos) << text;
  EXPECT_NE(text.find("standard: in 1802                 | ippd: (null)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("f1 50                             | f1 ✗\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace sheaf

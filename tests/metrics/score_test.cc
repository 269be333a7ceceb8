// `sheaf score` as a user runs it: what is missing, what is compared, what is refused.
#include <fmt/format.h>

#include "tests/metrics/score_command.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::ScoreCommand;

TEST_F(ScoreCommand, NamesWhatIsMissingAndUnknown) {
  const std::string some = write("some.json", R"({"q1": "a mill", "q3": null, "q9": "?"})");
  const std::string squad1 = "--metric squad1 --gold " + scratch_.path("gold.jsonl") + " --pred ";
  const Ran ran = run(squad1 + some);
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_NE(ran.err.find("2 without a prediction, scored as wrong: \"q2\", \"4\""), std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("1 with a prediction but not in the gold file, ignored: \"q9\""), std::string::npos);
  const json all = score(squad1 + some), part = score(squad1 + some + " --skip-missing");
  EXPECT_DOUBLE_EQ(all["exact_match"], 25);
  EXPECT_EQ(all["missing"], 2);
  EXPECT_EQ(all["unknown"], 1);
  EXPECT_DOUBLE_EQ(part["exact_match"], 50);
  EXPECT_EQ(part["total"], 2);
}

TEST_F(ScoreCommand, WhatHasNoPredictionIsWrongByEveryMetric) {
  const std::string some = write("some.json", R"({"q1": "old mill", "q2": "1995"})");
  const json all = score(squad() + some), part = score(squad() + some + " --skip-missing");
  EXPECT_DOUBLE_EQ(all["exact"], 25);
  EXPECT_EQ(part["total"], 2) << "as the script of SQuAD 2.0 has it";
  EXPECT_DOUBLE_EQ(part["exact"], 50);
  // Pairs are of the same questions, whoever answered them.
  const std::string other = write("other.json", R"({"q2": "1994", "4": "Ann"})");
  const json against = score(squad() + some + " --against " + other)["against"];
  EXPECT_EQ(against["total"], 4);
}

TEST_F(ScoreCommand, ValuesMarkedWrongCountWhereTheyRecur) {
  const std::string gold =
      write("values.jsonl",
            R"({"id": 1, "category": "Tea", "gold": {"Brand": "Oak"}, "wrong": {"Size": [7], "Form": [null]}}
{"id": 2, "category": "Tea", "gold": {}, "wrong": {"Brand": ["Elm"], "Size": [["a", "b"]]}}
)");
  const std::string rows = write(
      "rows.jsonl", R"({"id": 1, "category": "Tea", "values": {"Brand": "Oak", "Size": 7.0, "Form": null}}
{"id": 2, "category": "Tea", "values": {"Brand": "Elm", "Size": ["a", "b"]}}
{"id": 3, "category": "Tea", "values": {"Brand": "Ash", "Size": null}}
)");
  const std::string better =
      write("better.jsonl",
            R"({"id": 1, "category": "Tea", "values": {"Brand": "Oak", "Size": null, "Form": "bags"}}
{"id": 2, "category": "Tea", "values": {"Brand": "Elm", "Size": ["b"]}}
)");
  const std::string metric = "--metric attributes --gold " + gold + " --pred ";
  const json before = score(metric + rows), after = score(metric + better);
  EXPECT_EQ(before["vc"], 1);
  EXPECT_EQ(before["nv"], 3) << "Size, Brand and Size";
  EXPECT_EQ(before["vn"], 1) << "Form is not null";
  EXPECT_EQ(before["unknown"], 1) << "nobody looked at record 3";
  EXPECT_DOUBLE_EQ(before["micro_precision"], 25);
  EXPECT_EQ(after["nv"], 1);
  EXPECT_EQ(after["vn"], 0);
  EXPECT_NE(run(metric + better).err.find("3 with another value than the one marked wrong"),
            std::string::npos);
  EXPECT_EQ(score(metric + better + " --unmentioned-absent")["nn"], 0)
      << "Size of 1 is not known to be absent";
  const json against = score(metric + better + " --against " + rows);
  EXPECT_EQ(against["vc"], 1);
  EXPECT_EQ(against["nv"], 0) << "both are compared on what is known of both";
  expect_refusal("--metric attributes --pred " + better + " --gold " +
                     write("other.jsonl", R"({"id": 1, "category": "Tea", "gold": {}, "wrong": {"Size": [7]}}
)"),
                 "better.jsonl: nothing to score");
  expect_refusal("--metric attributes --pred " + rows + " --gold " +
                     write("list.jsonl", R"({"id": 1, "category": "Tea", "gold": {}, "wrong": {"Size": 7}}
)"),
                 "\"wrong\" has no list of values for \"Size\"");
}

TEST_F(ScoreCommand, AttributesThatTheGoldDoesNotNameMayCountAsAbsent) {
  const std::string gold = write(
      "values.jsonl", R"({"id": 1, "category": "Tea", "document": "x", "gold": {"Brand": "Oak", "Size": null}}
)");
  const std::string rows = write(
      "rows.jsonl",
      R"({"id": 1, "category": "Tea", "values": {"Brand": "Oak", "Size": null, "Color": "red", "Form": null}}
)");
  const std::string metric = "--metric attributes --gold " + gold + " --pred " + rows;
  const json named = score(metric), all = score(metric + " --unmentioned-absent");
  EXPECT_EQ(named["nn"], 1);
  EXPECT_DOUBLE_EQ(named["micro_f1"], 100);
  EXPECT_EQ(all["nv"], 1) << "Color is invented";
  EXPECT_EQ(all["nn"], 2);
  EXPECT_DOUBLE_EQ(all["micro_precision"], 50);
  EXPECT_DOUBLE_EQ(all["micro_recall"], 100);
}

TEST_F(ScoreCommand, AnAnswerMayContainTheRightOne) {
  const std::string said =
      write("said.json", R"({"q1": "It was the old mill, I think.", "q2": "19945", "q3": null, "4": "ann"})");
  const std::string gold = " --gold " + scratch_.path("gold.jsonl") + " --pred ";
  const json loft = score("--metric subspan-em" + gold + said);
  EXPECT_DOUBLE_EQ(loft["subspan_em"], 1);
  EXPECT_DOUBLE_EQ(loft["em"], 0.5);
  const json exact = score("--metric exact-match" + gold + said);
  EXPECT_DOUBLE_EQ(exact["exact_match"], 0.25);
}

TEST_F(ScoreCommand, KnowsWordsForNoAnswer) {
  const std::string words =
      write("words.json", R"({"q1": "mill", "q2": "1994", "q3": "Unanswerable.", "4": "Ann"})");
  EXPECT_DOUBLE_EQ(score(squad() + words)["NoAns_exact"], 0);
  EXPECT_DOUBLE_EQ(score(squad() + words + " --no-answer unanswerable")["NoAns_exact"], 100);
}

TEST_F(ScoreCommand, ComparesTwoRuns) {
  const std::string good = write("good.json", R"({"q1": "mill", "q2": "1994", "q3": null, "4": "Ann"})");
  const std::string bad = write("bad.json", R"({"q1": "mill", "q2": "1995", "q3": "x", "4": "Ann"})");
  const json report = score(squad() + good + " --against " + bad);
  EXPECT_DOUBLE_EQ(report["against"]["exact"], 50);
  EXPECT_DOUBLE_EQ(report["against"]["differences"]["exact"]["difference"], 50);
  EXPECT_EQ(report["against"]["mcnemar"]["only_pred"], 2);
  EXPECT_DOUBLE_EQ(report["against"]["mcnemar"]["p_value"], 0.5);
  const Ran table = run(squad() + good + " --against " + bad);
  EXPECT_NE(table.out.find("+50.0000"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("2 right only in --pred, 0 only in --against: p = 0.5000"), std::string::npos);
  EXPECT_EQ(run(squad() + good + " --against " + bad).out, table.out);
}

TEST_F(ScoreCommand, ASmallPIsNotWrittenAsZero) {
  std::string gold, good = "{", bad = "{";
  for (int i = 0; i < 30; ++i) {
    gold += fmt::format("{{\"id\": \"q{}\", \"answers\": [\"x\"]}}\n", i);
    good += fmt::format("{}\"q{}\": \"x\"", i == 0 ? "" : ",", i);
    bad += fmt::format("{}\"q{}\": \"y\"", i == 0 ? "" : ",", i);
  }
  const Ran ran = run("--metric squad --gold " + write("many.jsonl", gold) + " --pred " +
                      write("good.json", good + "}") + " --against " + write("bad.json", bad + "}"));
  EXPECT_NE(ran.out.find("30 right only in --pred, 0 only in --against: p < 0.0001 (McNemar, exact)"),
            std::string::npos)
      << ran.out;
}

TEST_F(ScoreCommand, WritesTheScoresOfEveryItem) {
  const std::string some = write("some.json", R"({"q1": "old mill", "q2": "in 1994"})");
  const std::string items = scratch_.path("items.jsonl");
  EXPECT_EQ(run(squad() + some + " --items " + items).exit_code, 0);
  const std::vector<json> lines = read_json_lines(read_text(items));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0]["exact"], 1);
  EXPECT_DOUBLE_EQ(lines[1]["f1"], 2.0 / 3);
  EXPECT_TRUE(lines[2]["prediction"].is_null());
  EXPECT_EQ(lines[3]["references"], json::parse(R"([["Ann"]])"));
}

TEST_F(ScoreCommand, UnreadableFilesAreRefusedByName) {
  const std::string good = write("good.json", R"({"q1": "x"})");
  expect_refusal("--metric sqad --gold g --pred p", "unknown metric \"sqad\"; use one of squad, squad1");
  expect_refusal("--metric squad --pred " + good,
                 "squad needs --pred RUN and the right answers: --gold FILE, or");
  expect_refusal(squad() + scratch_.path("nothing.json"), "nothing.json: no such file");
  expect_refusal(squad() + write("empty.json", "\n"), "empty.json: the file is empty; name a run's folder");
  const std::string other = "--metric squad --pred " + good + " --gold ";
  expect_refusal(other + "missing.json", "missing.json: no such file or folder");
  expect_refusal(other + "datasets/catalog",
                 "datasets/catalog: this is a folder, but not one of a known dataset");
  expect_refusal(other + "README.md", "README.md: not valid JSON");
  expect_refusal(other + write("void.json", ""), "void.json: the file is empty; name a dataset");
  expect_refusal(other + write("some.json", "{\"a\": 1}"),
                 "some.json: the file has no gold answers; name a dataset");
  const std::string own = "--metric attributes --pred " + good + " --gold ";
  expect_refusal(own + write("own.jsonl", R"({"code": 1, "kind": "Tea", "gold": {"Brand": "Oak"}})"),
                 "own.jsonl:1: no gold answers can be read: no \"id\"; a row needs {\"id\", \"gold\": "
                 "{attribute: value}} for "
                 "attributes");
  expect_refusal(
      own + write("bare.jsonl", R"({"id": 1, "Brand": "Oak"})"),
      "no \"gold\" or \"answers\"; a row needs {\"id\", \"gold\": {attribute: value}} for attributes, "
      "or {\"id\", \"answers\": [...]} for questions; if the right values are columns of the job's "
      "corpus, give --job JOB in place of --gold");
  expect_refusal(
      own +
          write("map.jsonl", R"({"id": 1, "category": "Tea", "gold": {"Brand": ["Elm", {"name": "Oak"}]}})"),
      "map.jsonl:1: no gold answers can be read: \"gold\": attribute \"Brand\" has an object among other "
      "values; a list has objects only or none");
  expect_refusal(other + write("blank.jsonl", "\n"),
                 "blank.jsonl: the file has no gold answers; name a dataset");
  expect_refusal(
      other + write("same.jsonl", "{\"id\":\"q1\",\"answer\":\"a\"}\n\n{\"id\":\"q1\",\"answer\":\"b\"}\n"),
      "same.jsonl:3: the id \"q1\" already stands at " + scratch_.path("same.jsonl") +
          ":1 with another answer; remove one of the two");
  expect_refusal(squad() + write("list.json", "[1]"), "list.json: this is not an object {id: answer}");
  expect_refusal(squad() + write("cut.json", "{\"q1\": "), "cut.json: not valid JSON");
  expect_refusal(squad() + write("odd.jsonl", "{\"id\":\"q1\",\"text\":\"a\"}\n"),
                 "odd.jsonl:1: the row has none of");
  expect_refusal(squad() + write("noid.jsonl", "{\"answer\":\"a\"}\n"),
                 "noid.jsonl:1: the row has no \"id\"");
  expect_refusal(squad() + write("other.json", R"({"z": "x"})"), "its ids (such as \"z\") do not match");
  expect_refusal(squad() + write("rows.jsonl", "{\"id\":1,\"values\":{}}\n"), "rows of an extract job");
  expect_refusal("--metric attributes --gold " + scratch_.path("gold.jsonl") + " --pred " + good,
                 "the metric attributes needs attribute values");
  expect_refusal("--metric quac --gold " + scratch_.path("gold.jsonl") + " --pred " + good,
                 "the metric quac needs dialogs");
  expect_refusal(squad() + write("notes.txt", "x"), "is not a file of predictions");
}

}  // namespace
}  // namespace sheaf

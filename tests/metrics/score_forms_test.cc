// The forms in which `sheaf score` takes its files, and what each metric says of them.
#include "io/base/table_writer.h"
#include "tests/metrics/score_command.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::ScoreCommand;

TEST_F(ScoreCommand, TakesEveryFormOfPredictions) {
  const std::string official =
      write("official.json", R"({"q1": "old mill.", "q2": "in 1994", "q3": "", "4": "Bob"})");
  const std::string flat =
      write("flat.jsonl",
            "{\"id\":\"q1\",\"answer\":\"Old Mill\"}\n{\"id\":\"q2\",\"answer\":\"in 1994\"}\n"
            "{\"id\":\"q3\",\"answer\":null}\n{\"id\":4,\"answer\":\"Bob\"}\n");
  std::filesystem::create_directory(scratch_.path("run"));
  write("run/rows-00000.jsonl",
        "{\"id\":\"p\",\"answers\":[{\"id\":\"q1\",\"answer\":\"Old Mill\"},{\"id\":\"q2\",\"answer\":\"in "
        "1994\"}]}\n");
  write("run/rows-00001.jsonl",
        "{\"id\":\"r\",\"answers\":[{\"id\":\"q3\",\"answer\":null,\"note\":\"x\"},{\"id\":4,\"answer\":"
        "\"Bob\"}]}\n");
  write("run/rejects.jsonl", "{\"reason\":\"no row\"}\n");
  const json wanted = score(squad() + official);
  EXPECT_DOUBLE_EQ(wanted["exact"], 50);
  EXPECT_DOUBLE_EQ(wanted["f1"], (1 + 2.0 / 3 + 1) / 4 * 100);
  EXPECT_EQ(wanted["total"], 4);
  EXPECT_EQ(wanted["HasAns_total"], 3);
  EXPECT_EQ(wanted["NoAns_exact"], 100);
  EXPECT_TRUE(wanted["intervals"].contains("f1"));
  EXPECT_EQ(score(squad() + flat), wanted);
  EXPECT_EQ(score(squad() + scratch_.path("run")), wanted);
}

TEST_F(ScoreCommand, GoldMayBeColumnsOfTheJobsCorpus) {
  write("schema.yaml",
        "categories:\n  Tea: [{name: Brand}, {name: Bags, type: integer}, {name: Organic, type: boolean}]\n"
        "  Pen: [{name: Brand}]\n");
  write(
      "corpus.jsonl",
      "{\"sku\":1,\"kind\":\"Tea\",\"text\":\"x\",\"Brand\":\"Oak\",\"Bags\":20,\"maker\":\"Elm\",\"right\":"
      "{\"Brand\":\"Oak\",\"Organic\":true}}\n"
      "{\"sku\":2,\"kind\":\"Pen\",\"text\":\"y\",\"Brand\":null,\"Bags\":7,\"maker\":\"Elm\",\"right\":{}}\n"
      "{\"sku\":3,\"kind\":\"Cup\",\"text\":\"a reject\",\"Brand\":\"Ash\"}\n");
  const std::string job =
      write("job.yaml",
            "model: {path: none.gguf}\ninput: {path: corpus.jsonl, id: sku, category: kind, document: text}\n"
            "task: {kind: extract, schema: schema.yaml}\noutput: {path: out}\n");
  const std::string rows =
      write("rows.jsonl",
            "{\"id\":1,\"category\":\"Tea\",\"values\":{\"Brand\":\"Oak\",\"Bags\":25,\"Organic\":true}}\n"
            "{\"id\":2,\"category\":\"Pen\",\"values\":{\"Brand\":\"Elm\"}}\n");
  const std::string asked = "--metric attributes --job " + job + " --pred " + rows;
  // Brand and Bags of the first, Brand of the second: right, wrong, invented.
  json found = score(asked);
  EXPECT_EQ(found["vc"], 1);
  EXPECT_EQ(found["vw"], 1);
  EXPECT_EQ(found["nv"], 1);
  EXPECT_EQ(found["vn"].get<int>() + found["nn"].get<int>(), 0) << "a pen has no bags, and a reject no row";
  EXPECT_EQ(found["types"]["integer"]["vw"], 1) << "the job names its schema";
  found = score(asked + " --gold-column Brand=maker");
  EXPECT_EQ(found["vc"], 1);
  EXPECT_EQ(found["vw"], 1);
  found = score(asked + " --gold-column right");
  EXPECT_EQ(found["vc"], 2) << "true is a value too";
  found = score(asked + " --gold-column right --gold-column Bags");
  EXPECT_EQ(found["vc"].get<int>() + found["vw"].get<int>(), 3);
  expect_refusal(asked + " --gold-column Brnd=maker",
                 "--gold-column Brnd=maker: the schema has no attribute \"Brnd\"; did you mean \"Brand\"?");
  expect_refusal(asked + " --gold-column makr", "makr");
  expect_refusal(asked + " --gold-column text",
                 "corpus.jsonl:1: no gold answers can be read: \"gold\" is not");
  expect_refusal(
      asked + " --set input.path=" + write("bare.jsonl", "{\"sku\":1,\"kind\":\"Tea\",\"text\":\"x\"}\n"),
      "no column is named like an attribute of");
  expect_refusal("--metric attributes --pred " + rows + " --gold-column Brand",
                 "attributes needs --pred RUN and the right answers: --gold FILE, or --job JOB");
  expect_refusal("--metric attributes --gold " + rows + " --pred " + rows + " --gold-column Brand",
                 "--gold-column and --set work only with --job");
}

TEST_F(ScoreCommand, ScoresByTypeOfValueWhereTheSchemaIsKnown) {
  const std::string schema = write(
      "schema.yaml",
      "categories:\n  Tea: [{name: Brand}, {name: Bags, type: integer}, {name: Organic, type: boolean}]\n"
      "  Pen: [{name: Brand}, {name: Refill, type: boolean}, {name: Bags, type: text}]\n");
  const std::string values = R"("gold":{"Brand":"Oak","Bags":20,"Organic":true}})"
                             "\n";
  const std::string gold = write("typed.jsonl", R"({"id":1,"category":"Tea",)" + values +
                                                    R"({"id":2,"category":"Pen","gold":{"Refill":false}})"
                                                    "\n");
  const std::string rows =
      write("rows.jsonl",
            "{\"id\":1,\"category\":\"Tea\",\"values\":{\"Brand\":\"Oak\",\"Bags\":25,\"Organic\":null}}\n"
            "{\"id\":2,\"category\":\"Pen\",\"values\":{\"Refill\":false}}\n");
  const std::string asked = "--metric attributes --pred " + rows + " --gold ";
  EXPECT_FALSE(score(asked + gold).contains("types")) << "rows alone do not tell types";
  json types = score(asked + gold + " --schema " + schema)["types"];
  ASSERT_EQ(types.size(), 3u) << types;
  EXPECT_EQ(types["boolean"]["values"], 2);
  EXPECT_EQ(types["boolean"]["micro_recall"], 50);
  EXPECT_EQ(types["boolean"]["micro_precision"], 100);
  EXPECT_EQ(types["boolean"]["vn"], 1);
  EXPECT_EQ(types["integer"]["vw"], 1);
  EXPECT_EQ(types["integer"]["micro_f1"], 0);
  EXPECT_EQ(types["text"]["micro_f1"], 100);
  const Ran text = run(asked + gold + " --schema " + schema);
  EXPECT_NE(text.out.find("\nby type     values  precision   recall       f1\n"
                          "  boolean        2     100.00    50.00    66.67\n"
                          "  integer        1       0.00     0.00     0.00\n"
                          "  text           1     100.00   100.00   100.00\n"),
            std::string::npos)
      << text.out;
  // Gold without a category has that of the rows.
  const std::string bare = write("bare.jsonl", R"({"id":1,)" + values);
  EXPECT_EQ(score(asked + bare + " --schema " + schema)["types"].size(), 3u);
  expect_refusal(squad() + rows + " --schema " + schema, "--schema works only with --metric attributes");
  expect_refusal(asked + gold + " --schema " + rows, "rows.jsonl");
}

TEST_F(ScoreCommand, GoldAnswersMayBeAColumn) {
  write("corpus.jsonl",
        "{\"n\":1,\"c\":\"x\",\"q\":\"Who?\",\"right\":\"Ann\"}\n"
        "{\"n\":2,\"c\":\"x\",\"q\":\"When?\",\"right\":[\"1994\",\"in 1994\"]}\n"
        "{\"n\":3,\"c\":\"x\",\"q\":\"Why?\",\"right\":null}\n");
  const std::string job =
      write("job.yaml",
            "model: {path: none.gguf}\ninput: {path: corpus.jsonl, id: n, context: c, question: q}\n"
            "task: {kind: ask}\nmethod: {name: ippd}\noutput: {path: out}\n");
  const std::string rows = write("rows.jsonl",
                                 "{\"id\":1,\"answer\":\"Ann\"}\n{\"id\":2,\"answer\":\"in 1994\"}\n"
                                 "{\"id\":3,\"answer\":\"so\"}\n");
  const json found = score("--metric squad --job " + job + " --gold-column right --pred " + rows);
  EXPECT_NEAR(found["exact"], 200.0 / 3, 1e-9);
  EXPECT_EQ(found["NoAns_exact"], 0);
  expect_refusal("--metric squad --job " + job + " --pred " + rows,
                 "name the column of the right answers, one: --gold-column COLUMN");
}

TEST_F(ScoreCommand, AChoiceIsNamedByItsLetterOrItsText) {
  std::filesystem::create_directories(scratch_.path("race/high"));
  write("race/high/1.txt",
        R"({"id": "high1.txt", "article": "Tom has a dog.", "questions": ["Who?", "What?", "Where?", "Why?"],
            "options": [["Ann", "Tom", "x", "y"], ["a cat", "b", "c", "a dog"], ["p", "q", "r", "s"],
                        ["k", "l", "m", "n"]],
            "answers": ["B", "D", "C", "A"]})");
  const auto accuracy = [&](const std::vector<std::string>& answers) {
    json predictions;
    for (size_t i = 0; i < answers.size(); ++i) predictions["high1.txt/" + std::to_string(i)] = answers[i];
    return score("--metric accuracy --gold " + scratch_.path("race") + " --pred " +
                 write("p.json", predictions.dump()))["accuracy"]
        .get<double>();
  };
  EXPECT_DOUBLE_EQ(accuracy({"Tom", "a dog", "r", "k"}), 1);
  EXPECT_DOUBLE_EQ(accuracy({"b", "D.", "(C)", " A "}), 1);
  EXPECT_DOUBLE_EQ(accuracy({"Ann", "a cat", "D", ""}), 0);
}

TEST_F(ScoreCommand, OptionsThatAreLettersAreNotTakenForOthers) {
  const std::string gold = write(
      "gold.jsonl",
      R"({"id": 1, "context": "x", "questions": [{"id": "q", "question": "?", "options": ["B", "A"], "answers": ["A"]}]})"
      "\n");
  const auto accuracy = [&](const std::string& letter, const std::string& text) {
    const std::string rows = write(
        "rows.jsonl",
        json{{"id", 1}, {"answers", {{{"id", "q"}, {"answer", letter}, {"option", text}}}}}.dump() + "\n");
    return score("--metric accuracy --gold " + gold + " --pred " + rows)["accuracy"].get<double>();
  };
  EXPECT_DOUBLE_EQ(accuracy("A", "B"), 1);
  EXPECT_DOUBLE_EQ(accuracy("B", "A"), 0);
}

TEST_F(ScoreCommand, ListsInACellAreReadAsLists) {
  const std::string schema =
      write("schema.yaml",
            "categories: {Tea: [{name: Languages, type: list}, {name: Price, type: number, unit: USD}]}\n");
  write(
      "corpus.csv",
      "n,t,Languages,Price\n1,x,\"German, French\",$7.50\n2,x,\"[\"\"German\"\", \"\"French\"\"]\",10.50\n");
  const std::string job =
      write("job.yaml",
            "model: {path: none.gguf}\ninput: {path: corpus.csv, id: n, document: t}\n"
            "task: {kind: extract, schema: schema.yaml}\nmethod: {name: hpd}\noutput: {path: out}\n");
  const std::string rows =
      write("rows.jsonl", R"({"id":"1","values":{"Languages":["German","French"],"Price":7.5}})"
                          "\n"
                          R"({"id":"2","values":{"Languages":["French"],"Price":10.5}})"
                          "\n");
  const json found = score("--metric attributes --job " + job + " --pred " + rows);
  EXPECT_EQ(found["vc"], 4) << found;
  const std::string gold =
      write("gold.jsonl", R"({"id":1,"gold":{"Languages":"German, French","Price":"$7.50"}})"
                          "\n");
  EXPECT_EQ(score("--metric attributes --gold " + gold + " --schema " + schema + " --pred " + rows)["vc"], 2);
  EXPECT_EQ(score("--metric attributes --gold " + gold + " --pred " + rows)["vc"], 0) << "as texts";
}

TEST_F(ScoreCommand, TakesTheFormsOfHotpotQaAndMusique) {
  const std::string hotpot =
      write("hotpot.json", R"({"answer": {"q1": "the mill", "q2": "yes"}, "sp": {"q1": []}})");
  const std::string musique =
      write("musique.jsonl",
            "{\"id\":\"q1\",\"predicted_answer\":\"the mill\",\"predicted_answerable\":true}\n"
            "{\"id\":\"q2\",\"predicted_answer\":\"yes\",\"predicted_support_idxs\":[]}\n");
  const std::string gold = " --gold " + scratch_.path("gold.jsonl") + " --quiet --pred ";
  const json answers = score("--metric hotpotqa" + gold + hotpot);
  EXPECT_DOUBLE_EQ(answers["em"], 0.25);
  EXPECT_EQ(answers["total"], 4);
  EXPECT_EQ(score("--metric hotpotqa" + gold + musique), answers);
  EXPECT_DOUBLE_EQ(score("--metric musique" + gold + musique)["answer_f1"], 1.0 / 3);
}

TEST_F(ScoreCommand, TakesParquetRowsAsTheirLines) {
  using Type = TableColumn::Type;
  const auto parquet = [&](const std::string& name, const std::string& lines,
                           const std::vector<TableColumn>& columns) {
    write_parquet_lines(write(name + ".jsonl", lines), columns, *real_files().open(scratch_.path(name)));
    return scratch_.path(name);
  };
  const std::string nested =
      "{\"id\":\"p\",\"answers\":[{\"id\":\"q1\",\"answer\":\"Old "
      "Mill\"},{\"id\":\"q2\",\"answer\":null,\"note\":"
      "\"cut\"}]}\n{\"id\":\"r\",\"answers\":[{\"id\":\"4\",\"answer\":\"Ann\"}]}\n";
  const json rows = score(squad() + write("nested.jsonl", nested));
  EXPECT_EQ(
      score(squad() + parquet("nested.parquet", nested, {{"id", Type::text}, {"answers", Type::answers}})),
      rows);
  EXPECT_DOUBLE_EQ(rows["exact"], 50) << "of four, one of them without a prediction";

  const std::string flat = "{\"id\":\"q1\",\"answer\":\"a mill\",\"note\":null}\n";
  EXPECT_EQ(score(squad() + parquet("flat.parquet", flat, {{"id", Type::text}, {"answer", Type::text}})),
            score(squad() + write("flat.jsonl", flat)));

  const std::string gold = write(
      "test.jsonl",
      R"({"input": "Otter tea", "category": "Tea", "target_scores": {"Brand": {"Otter": 1}, "answer": {"n/a": 1}}}
{"input": "Red rope, 7 m", "category": "Rope", "target_scores": {"Color": {"Red": 1}, "Length": {"7": 1}}}
)");
  const std::string values = R"({"id":1,"category":"Tea","values":{"Brand":"Otter","answer":null}}
{"id":2,"category":"Rope","values":{"Color":"Blue","Length":7},"seconds":1}
)";
  const std::string lines = write("values.jsonl", values);
  const std::string cells = R"({"id":1,"category":"Tea","Brand":"Otter","answer":null}
{"id":2,"category":"Rope","Color":"Blue","Length":7,"seconds":1}
)";
  const std::string table = parquet("values.parquet", cells,
                                    {{"id", Type::integer},
                                     {"category", Type::text},
                                     {"Brand", Type::text},
                                     {"answer", Type::text},
                                     {"Color", Type::text},
                                     {"Length", Type::number},
                                     {"notes", Type::text_map},
                                     {"seconds", Type::number}});
  const std::string metric = "--metric attributes --gold " + gold + " --pred ";
  EXPECT_EQ(score(metric + table), score(metric + lines));
  EXPECT_EQ(score(metric + table)["vc"], 2);
  // A table cannot tell an attribute that is null throughout from one of another category.
  EXPECT_EQ(score("--metric agreement --gold " + table + " --pred " + table)["total"], 3);
  EXPECT_EQ(score("--metric agreement --gold " + table + " --pred " + lines)["exact_match"], 1);
  const json twice =
      score(squad() + parquet("twice.parquet", flat + flat, {{"id", Type::text}, {"answer", Type::text}}));
  EXPECT_EQ(twice["repeated"], 1);
}

TEST_F(ScoreCommand, CategoriesThatTheGoldDoesNotSayAreThoseOfTheRows) {
  const std::string bare = write(
      "bare.jsonl", "{\"id\":1,\"gold\":{\"Brand\":\"Oak\"}}\n{\"id\":2,\"gold\":{\"Brand\":\"Elm\"}}\n");
  const std::string rows =
      "{\"id\":1,\"category\":\"Tea\",\"values\":{\"Brand\":\"Oak\"}}\n"
      "{\"id\":2,\"category\":\"Pen\",\"values\":{\"Brand\":\"Ash\"}}\n";
  const json found = score("--metric attributes --gold " + bare + " --pred " + write("rows.jsonl", rows));
  EXPECT_EQ(found["macro_precision"], 50);
  EXPECT_EQ(found["groups"]["Tea"]["vc"], 1);
  EXPECT_EQ(found["groups"]["Pen"]["vw"], 1);
  using Type = TableColumn::Type;
  const std::string flat =
      "{\"id\":1,\"category\":\"Tea\",\"Brand\":\"Oak\"}\n"
      "{\"id\":2,\"category\":\"Pen\",\"Brand\":\"Ash\"}\n";
  const std::string table = scratch_.path("rows.parquet");
  write_parquet_lines(write("flat.jsonl", flat),
                      {{"id", Type::integer}, {"category", Type::text}, {"Brand", Type::text}},
                      *real_files().open(table));
  EXPECT_EQ(score("--metric attributes --gold " + bare + " --pred " + table), found);
  // Where nobody says a category there is nothing to average over, which is not 0.
  const std::string none = write("none.jsonl", "{\"id\":1,\"values\":{\"Brand\":\"Oak\"}}\n");
  EXPECT_FALSE(score("--metric attributes --gold " + bare + " --pred " + none).contains("macro_precision"));
}

TEST_F(ScoreCommand, AttributesThatOnlyOneSideNamesAreTold) {
  const std::string gold = write("gold.jsonl",
                                 "{\"id\":1,\"gold\":{\"Colour\":\"red\",\"Brand\":\"Oak\"}}\n"
                                 "{\"id\":2,\"gold\":{\"Zest\":\"no row has this id\"}}\n");
  const std::string rows =
      write("rows.jsonl",
            "{\"id\":1,\"category\":\"Pen\",\"values\":{\"Color\":\"red\",\"Brand\":\"Oak\","
            "\"Size\":null}}\n");
  const std::string asked = "--metric attributes --gold " + gold + " --pred " + rows;
  expect_told(asked,
              "rows.jsonl: 1 attribute of the gold that no row has, counted as null: "
              "\"Colour\" (did you mean \"Color\"?)\n");
  expect_told(asked, "2 attributes of the rows that the gold never names, not scored: \"Color\", \"Size\"\n");
  EXPECT_EQ(run(asked + " --quiet").err, "");
}

TEST_F(ScoreCommand, RowsThatShareAnIdAreCountedAndNeverMixedUp) {
  const std::string rows = write("rows.jsonl",
                                 "{\"id\":1,\"category\":\"Pen\",\"values\":{\"Brand\":\"Oak\"}}\n"
                                 "{\"id\":1,\"category\":\"Tea\",\"values\":{\"Brand\":\"Elm\"}}\n"
                                 "{\"id\":2,\"category\":\"Tea\",\"values\":{\"Brand\":\"Ash\"}}\n");
  const std::string metric = "--metric attributes --pred " + rows + " --gold ";
  // The gold says the id once: the first row counts.
  const std::string once = write(
      "once.jsonl", "{\"id\":1,\"gold\":{\"Brand\":\"Oak\"}}\n{\"id\":2,\"gold\":{\"Brand\":\"Ash\"}}\n");
  const json found = score(metric + once);
  EXPECT_EQ(found["vc"], 2);
  EXPECT_EQ(found["vw"], 0);
  EXPECT_EQ(found["repeated"], 1);
  expect_told(metric + once, "1 row with the id of an earlier row, left out");
  // As many gold answers as rows are those of one corpus: in its order.
  const std::string both =
      write("both.jsonl",
            "{\"id\":1,\"gold\":{\"Brand\":\"Oak\"}}\n{\"id\":1,\"gold\":{\"Brand\":\"Elm\"}}\n"
            "{\"id\":2,\"gold\":{\"Brand\":\"Ash\"}}\n");
  const json paired = score(metric + both);
  EXPECT_EQ(paired["vc"], 3);
  EXPECT_EQ(paired["repeated"], 0);
  EXPECT_EQ(paired["groups"]["Tea"]["vc"], 2);
  expect_told(metric + both, "1 id of several rows, compared in the order");
  // Nobody knows which of three belongs to which of two.
  const std::string three =
      write("three.jsonl",
            "{\"id\":1,\"gold\":{\"Brand\":\"Oak\"}}\n{\"id\":1,\"gold\":{\"Brand\":\"Elm\"}}\n"
            "{\"id\":1,\"gold\":{\"Brand\":\"Fir\"}}\n{\"id\":2,\"gold\":{\"Brand\":\"Ash\"}}\n");
  const json ambiguous = score(metric + three);
  EXPECT_EQ(ambiguous["vc"], 1);
  EXPECT_EQ(ambiguous["ambiguous"], 1);
  EXPECT_EQ(score("--metric agreement --gold " + rows + " --pred " + rows)["exact_match"], 1);
}

TEST_F(ScoreCommand, CountsAttributesByCategory) {
  const std::string gold = write(
      "test.jsonl",
      R"({"input": "Otter tea, mint", "category": "Tea", "target_scores": {"Brand": {"Otter": 1}, "Form": {"n/a": 1}}}
{"input": "Red rope", "category": "Rope", "target_scores": {"Color": {"Red": 1}, "Length": {"n/a": 1}}}
)");
  const std::string rows = write("rows.jsonl",
                                 R"({"id":1,"category":"Tea","values":{"Brand":"Otter","Form":null}}
{"id":2,"category":"Rope","values":{"Color":"Blue","Length":7}}
)");
  const json report = score("--metric attributes --gold " + gold + " --pred " + rows);
  EXPECT_EQ(report["vc"], 1);
  EXPECT_EQ(report["vw"], 1);
  EXPECT_EQ(report["nv"], 1);
  EXPECT_EQ(report["nn"], 1);
  EXPECT_DOUBLE_EQ(report["micro_precision"], 33.33);
  EXPECT_DOUBLE_EQ(report["micro_recall"], 50);
  EXPECT_DOUBLE_EQ(report["groups"]["Tea"]["micro_f1"], 100);
  EXPECT_EQ(report["groups"]["Rope"]["attributes"]["Length"]["nv"], 1);
  EXPECT_DOUBLE_EQ(report["macro_recall"], 33.33);

  const std::string other = write("other.jsonl",
                                  R"({"id":1,"values":{"Brand":"Otter","Form":null}}
{"id":2,"values":{"Color":"Blue","Length":8}}
)");
  const json agreement = score("--metric agreement --gold " + rows + " --pred " + other);
  EXPECT_DOUBLE_EQ(agreement["exact_match"], 0.75);
  EXPECT_EQ(agreement["total"], 4);
}

TEST_F(ScoreCommand, CountsAJudgesWords) {
  const std::string judged =
      write("judged.jsonl",
            R"({"id": 1, "category": "Tea", "judgements": {"Brand": "correct", "Form": "correct null"}}
{"id": 2, "reply": "Color: wrong.\n<result>{\"Color\": \"incorrect\", \"Length\": \"hallucination\"}</result>"}
)");
  const json report = score("--metric llm-f1 --judgements " + judged);
  EXPECT_DOUBLE_EQ(report["llm_precision"], 0.5);
  EXPECT_DOUBLE_EQ(report["llm_recall"], 2.0 / 3);
  // A judge who only ever missed values says nothing of precision.
  const std::string missed =
      write("missed.jsonl", R"({"id": 1, "category": "Tea", "judgements": {"Brand": "missing"}})");
  const json nothing = score("--metric llm-f1 --judgements " + missed);
  EXPECT_TRUE(nothing.at("llm_precision").is_null()) << nothing;
  EXPECT_TRUE(nothing["groups"]["Tea"].at("llm_precision").is_null()) << nothing;
  const Ran table = run("--metric llm-f1 --judgements " + missed);
  EXPECT_NE(table.out.find("llm_precision             -\n"), std::string::npos) << table.out;
  EXPECT_EQ(table.out.find("nan"), std::string::npos) << table.out;
  const Ran some = run("--metric llm-f1 --judgements " +
                       write("replies.jsonl",
                             "{\"id\": 1, \"reply\": \"<result>{\\\"Brand\\\": \\\"Correct\\\"}</result>\"}\n"
                             "{\"id\": 2, \"reply\": \"I would say it is correct.\"}\n"));
  EXPECT_EQ(some.exit_code, 0) << some.err;
  EXPECT_NE(some.err.find("1 with a reply that cannot be read, left out: \"2\""), std::string::npos)
      << some.err;
  expect_refusal("--metric llm-f1 --judgements " +
                     write("bad.jsonl", "{\"id\": 1, \"judgements\": {\"a\": \"fine\"}}\n"),
                 "bad.jsonl:1: \"a\" is judged \"fine\"");
  expect_refusal("--metric llm-f1", "give --judgements FILE");
}

TEST_F(ScoreCommand, TakesDialoguesAndSpans) {
  const std::string quac =
      write("quac.json",
            R"({"data": [{"title": "t", "paragraphs": [{"id": "C_1", "context": "x CANNOTANSWER", "qas": [
      {"id": "C_1_q#0", "question": "?", "yesno": "n", "followup": "y", "answers": [{"text": "a red boat", "answer_start": 0}],
       "orig_answer": {"text": "a red boat", "answer_start": 0}},
      {"id": "C_1_q#1", "question": "?", "yesno": "n", "followup": "y", "answers": [{"text": "CANNOTANSWER", "answer_start": 0}],
       "orig_answer": {"text": "CANNOTANSWER", "answer_start": 0}}]}]}]})");
  const std::string lines = write(
      "said.jsonl",
      R"({"qid": ["C_1_q#0", "C_1_q#1"], "best_span_str": ["red boat", "CANNOTANSWER"], "yesno": ["y", "y"], "followup": ["y", "y"]})");
  const json dialog = score("--metric quac --gold " + quac + " --pred " + lines);
  EXPECT_DOUBLE_EQ(dialog["HEQ"], 100);
  EXPECT_DOUBLE_EQ(dialog["DHEQ"], 100);
  EXPECT_DOUBLE_EQ(dialog["unanswerable_acc"], 100);
  EXPECT_DOUBLE_EQ(dialog["yes/no"], 0);
  EXPECT_DOUBLE_EQ(dialog["followup"], 100);
  EXPECT_DOUBLE_EQ(dialog["human_f1"], 100);
  const json plain = score("--metric quac --gold " + quac + " --pred " +
                           write("plain.json", R"({"C_1_q#0": "red boat", "C_1_q#1": null})"));
  EXPECT_FALSE(plain.contains("yes/no")) << plain;
  EXPECT_FALSE(plain.contains("followup")) << plain;
  EXPECT_EQ(plain["HEQ"], dialog["HEQ"]);

  const std::string drop = write("drop.json",
                                 R"({"p1": {"passage": "x", "qa_pairs": [
      {"query_id": "d1", "question": "?", "answer": {"number": "12", "date": {}, "spans": []}, "validated_answers": []},
      {"query_id": "d2", "question": "?", "answer": {"number": "", "date": {}, "spans": ["red boat", "Ann"]}},
      {"query_id": "d3", "question": "?", "answer": {"number": "", "date": {"day": "3", "month": "May", "year": ""}, "spans": []}}]}})");
  const std::string said = write("said.json", R"({"d1": 12.0, "d2": ["ann", "the boat"], "d3": "3 May"})");
  const json spans = score("--metric drop --gold " + drop + " --pred " + said);
  EXPECT_DOUBLE_EQ(spans["global_em"], 2.0 / 3);
  EXPECT_DOUBLE_EQ(spans["global_f1"], (1 + 0.83 + 1) / 3);
  EXPECT_EQ(spans["groups"]["number"]["total"], 1);
  EXPECT_DOUBLE_EQ(spans["groups"]["spans"]["global_f1"], 0.83);
  EXPECT_DOUBLE_EQ(spans["groups"]["date"]["global_em"], 1);
}

}  // namespace
}  // namespace sheaf

// `sheaf eval` on a model of random weights and files written by hand.
#include <gtest/gtest.h>

#include "io/eval/judge.h"
#include "tests/app/running.h"
#include "tests/task/well_formed.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;

constexpr const char* kMethods =
    "methods: [{name: standard}, {name: prefix}, {label: packed, name: ippd, documents: 2}]\n";

class EvalCommand : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    json paragraphs = json::array();
    for (int p = 0; p < 6; ++p) {
      json questions = json::array();
      for (int q = 0; q < 3; ++q)
        questions.push_back({{"id", "q" + std::to_string(p) + std::to_string(q)},
                             {"question", "What is in box " + std::to_string(p * q) + "?"},
                             {"answers", json::array({{{"text", "tea & <rye>"}}})}});
      paragraphs.push_back(
          {{"context", "Box " + std::to_string(p) + " holds tea & <rye>."}, {"qas", questions}});
    }
    const json data{{"version", "v2.0"},
                    {"data", json::array({{{"title", "Boxes"}, {"paragraphs", paragraphs}}})}};
    std::filesystem::create_directory(scratch_.path("data"));
    scratch_.write("data/boxes.json", data.dump());
    scratch_.write("job.yaml",
                   "model: {path: none}\n"
                   "input: {path: none.json, format: squad}\n"
                   "task: {kind: ask, instruction: Tell}\n"
                   "method: {name: ippd, max_value_tokens: 4}\n"
                   "engine: {device: cpu, window: 2}\n"
                   "output: {path: none}\n");
  }

  /// The command for an evaluation with these `methods` and more keys of the dataset.
  std::string command(const std::string& methods = kMethods, const std::string& dataset = "") {
    const std::string file = scratch_.write(
        "eval.yaml",
        "name: Boxes\noutput: {path: " + scratch_.path("out") + "}\ndata: " + scratch_.path("data") +
            "\nbaseline: standard\nmodels:\n  - {name: tiny, path: " + model_ +
            ", chat: plain}\ndatasets:\n  - {name: boxes, job: " + scratch_.path("job.yaml") +
            ", path: boxes.json, metric: squad" + dataset + "}\n" + methods + "cost: {usd_per_hour: 3.6}\n");
    return "eval " + file;
  }
  std::string run_folder(const std::string& method) const {
    return scratch_.path("out/tiny/boxes/" + method);
  }

  TempFolder scratch_;
  std::string model_;
};

TEST_F(EvalCommand, TablesOfOthersAreNeverReplaced) {
  std::filesystem::create_directory(scratch_.path("out"));
  scratch_.write("out/table.csv", "mine");
  for (const char* more : {"", " --restart"}) {
    const Ran ran = run_sheaf(scratch_, command() + more);
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_NE(ran.err.find("table.csv, but no evaluation"), std::string::npos) << ran.err;
    EXPECT_EQ(read_text(scratch_.path("out/table.csv")), "mine");
    EXPECT_FALSE(std::filesystem::exists(scratch_.path("out/tiny")));
  }
  // A table that an evaluation made may be replaced, also where its lock is gone.
  std::filesystem::remove(scratch_.path("out/table.csv"));
  ASSERT_EQ(run_sheaf(scratch_, command()).exit_code, 0);
  std::filesystem::remove(scratch_.path("out/.lock"));
  EXPECT_EQ(run_sheaf(scratch_, command()).exit_code, 0);
}

TEST_F(EvalCommand, TheTableHoldsTheFiguresOfScore) {
  const Ran ran = run_sheaf(scratch_, command() + " --json --log-samples");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json table = json::parse(ran.out);
  EXPECT_EQ(table, json::parse(read_text(scratch_.path("out/table.json"))));
  ASSERT_EQ(table["rows"].size(), 3u);
  for (const json& row : table["rows"]) {
    const std::string folder = run_folder(row["method"].get<std::string>());
    const Ran score = run_sheaf(scratch_, "score --json --metric squad --gold " +
                                              scratch_.path("data/boxes.json") + " --pred " + folder);
    ASSERT_EQ(score.exit_code, 0) << score.err;
    const json scored = json::parse(score.out), report = json::parse(read_text(folder + "/report.json"));
    EXPECT_EQ(row["quality"], scored["f1"]);
    EXPECT_EQ(row["quality_interval"], scored["intervals"]["f1"]);
    EXPECT_EQ(row["count"], 18);
    const double work = report["seconds"]["total"].get<double>() - report["seconds"]["open"].get<double>();
    EXPECT_DOUBLE_EQ(row["throughput"].get<double>(), 18 / work);
    EXPECT_NEAR(row["usd_per_1k"].get<double>(), work / 18, 1e-9) << "a dollar takes 1,000 seconds";
    EXPECT_DOUBLE_EQ(row["speedup"].get<double>(),
                     row["throughput"].get<double>() / table["rows"][0]["throughput"].get<double>());
    const auto samples = read_json_lines(read_text(folder + "/samples.jsonl"));
    ASSERT_EQ(samples.size(), 18u);
    EXPECT_EQ(samples[4]["id"], "q11");
    EXPECT_EQ(samples[4]["question"], "What is in box 1?");
    EXPECT_EQ(samples[4]["context"]["id"], "Boxes/1");
    EXPECT_EQ(samples[4]["references"][0][0], "tea & <rye>");
    EXPECT_TRUE(samples[4]["scores"].contains("f1"));
  }
  EXPECT_FALSE(table["rows"][0].contains("exact_match_percent")) << "the baseline";
  for (const size_t other : {1u, 2u})
    EXPECT_EQ(table["rows"][other]["exact_match_percent"], 100.0) << "exact methods";
  EXPECT_EQ(test::xml_fault(read_text(scratch_.path("out/table.html"))), "");
  EXPECT_EQ(test::xml_fault(read_text(scratch_.path("out/differences.html"))), "");
  EXPECT_NE(read_text(scratch_.path("out/table.md")).find("| tiny | boxes | packed | 18 |"),
            std::string::npos);

  // Finished runs are not run again, and their figures stay.
  const std::string before = read_text(run_folder("packed") + "/report.json");
  const Ran again = run_sheaf(scratch_, command());
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("is already finished"), std::string::npos) << again.err;
  EXPECT_EQ(read_text(run_folder("packed") + "/report.json"), before);
  EXPECT_NE(again.out.find("tiny   boxes    packed"), std::string::npos) << again.out;
}

TEST_F(EvalCommand, ALimitLeavesOutTheRest) {
  const Ran ran = run_sheaf(scratch_, command(kMethods, ", limit: 2") + " --json --method standard");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json row = json::parse(ran.out)["rows"][0];
  EXPECT_EQ(row["count"], 6);
  EXPECT_EQ(row["missing"], 0);
  const Ran score =
      run_sheaf(scratch_, "score --json --skip-missing --quiet --metric squad --gold " +
                              scratch_.path("data/boxes.json") + " --pred " + run_folder("standard"));
  EXPECT_EQ(row["quality"], json::parse(score.out)["f1"]);
}

TEST_F(EvalCommand, RejectsAreWrongAnswersAndDoNotStopIt) {
  const std::string data = read_text(scratch_.path("data/boxes.json"));
  scratch_.write("data/boxes.json",
                 std::string(data).replace(data.find("Box 3 holds"), 1, std::string(9000, 'x')));
  const Ran ran = run_sheaf(scratch_, command() + " --json");
  ASSERT_EQ(ran.exit_code, 1) << ran.err;
  const json table = json::parse(ran.out);
  for (const json& row : table["rows"]) {
    EXPECT_EQ(row["rejects"], 1);
    EXPECT_EQ(row["missing"], 3);
  }
  EXPECT_NE(ran.out.find("rejected records: 1; items without a prediction, scored as wrong: 3"),
            std::string::npos);
}

TEST_F(EvalCommand, DifferencesAreShownSideBySide) {
  const std::string methods =
      "methods: [{name: standard}, {label: wild, name: standard, temperature: 1.5, seed: 3}]\n";
  ASSERT_EQ(run_sheaf(scratch_, command(methods) + " -q").exit_code, 0);
  const Ran shown = run_sheaf(scratch_, command(methods) + " --differences standard wild --count 2");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_NE(shown.out.find("tiny, boxes: standard and wild differ in "), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("context     Box 0 holds tea & <rye>."), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("references  tea & <rye>"), std::string::npos);
  EXPECT_EQ(test::xml_fault(read_text(scratch_.path("out/differences.html"))), "");
  EXPECT_NE(read_text(scratch_.path("out/differences.html")).find("tea &amp; &lt;rye&gt;"),
            std::string::npos);
  const json pairs =
      json::parse(run_sheaf(scratch_, command(methods) + " --differences standard wild --json").out);
  ASSERT_EQ(pairs.size(), 1u);
  ASSERT_GT(pairs[0]["differing"], 0);
  EXPECT_NE(pairs[0]["shown"][0]["first"]["answer"], pairs[0]["shown"][0]["second"]["answer"]);
  const Ran unknown = run_sheaf(scratch_, command(methods) + " --differences standard wilde");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("did you mean \"wild\""), std::string::npos) << unknown.err;
}

TEST_F(EvalCommand, AStoppedEvaluationResumes) {
  const std::string more = " --set engine.window=1 --set method.max_value_tokens=200";
  const std::string line = command() + more + " --quiet";
  test::Running evaluation(line + " 2>/dev/null", test::stop_at_group(1));
  ASSERT_TRUE(evaluation.stopped());
  EXPECT_TRUE(std::filesystem::exists(run_folder("standard") + "/journal"));
  evaluation.send(SIGTERM);
  EXPECT_EQ(evaluation.end(), 130);
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("out/table.json")));
  ASSERT_EQ(run_sheaf(scratch_, line).exit_code, 0);
  const json table = json::parse(read_text(scratch_.path("out/table.json")));
  EXPECT_EQ(table["rows"][2]["exact_match_percent"], 100.0);
}

TEST_F(EvalCommand, MistakesAreFoundBeforeAnythingRuns) {
  const auto refused = [&](const std::string& line, const std::string& words) {
    const Ran ran = run_sheaf(scratch_, line);
    EXPECT_EQ(ran.exit_code, 2) << line;
    EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
  };
  const std::string place = scratch_.path("eval.yaml") + ":";
  refused(command("methods: [{name: standard}, {name: ippd, documnts: 2}]\n"),
          place + "9: unknown key \"documnts\"; did you mean \"documents\"?");
  refused(command("methods: [{name: standard}, {name: hpd}]\n"),
          place + "9: method.name hpd works only with task.kind extract");
  refused(command("methods: [{name: standard}, {name: standard}]\n"),
          "method's label \"standard\" appears twice");
  refused(command("methods: [{name: prefix}]\n"), "baseline \"standard\" is not the label of a method");
  refused(command("methods: [{label: a/b, name: prefix}]\n"), "cannot be the name of a folder");
  refused(command(kMethods, ", metrik: x"), place + "8: unknown key \"metrik\"; did you mean \"metric\"?");
  refused(command(kMethods, ", value: f2"), "squad has no value \"f2\"; did you mean \"f1\"?");
  refused(command(kMethods, ", set: {input.limt: 3}"),
          place + "8: unknown key \"limt\"; did you mean \"limit\"?");
  refused(command(kMethods, ", gold: none.json"), "none.json");
  refused(command(std::string(kMethods) +
                  "paper: {table: T, rows: [{model: tiny, dataset: boxs, method: prefix}]}\n"),
          "paper.rows.dataset \"boxs\" is not in this evaluation; did you mean \"boxes\"?");
  refused(command(kMethods, ", judge: {model: m}"), "judge works only with task.kind extract");
  refused(command() + " --model tinny", "did you mean \"tiny\"?");
  refused(command() + " --model tiny=" + scratch_.path("no-model"), "--model tiny: model.path: no such file");
  refused(command() + " --set method.documents=x", "--set method.documents=x");
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("out")));
}

TEST_F(EvalCommand, ARunOfOtherSettingsIsRefusedBeforeAnythingRuns) {
  ASSERT_EQ(run_sheaf(scratch_, command() + " -q --method packed").exit_code, 0);
  const Ran ran = run_sheaf(scratch_, command() + " --limit 3");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(
      ran.err.find("packed: the folder holds a run, but since then input.limit was 0 (all) and is now 3"),
      std::string::npos)
      << ran.err;
  EXPECT_FALSE(std::filesystem::exists(run_folder("standard"))) << "found before anything ran";
  std::filesystem::copy(model_, scratch_.path("broken"));
  scratch_.write("broken/config.json", "{}");
  const Ran broken = run_sheaf(scratch_, command() + " --model tiny=" + scratch_.path("broken"));
  EXPECT_EQ(broken.exit_code, 2) << broken.err;
  EXPECT_EQ(run_sheaf(scratch_, command() + " --limit 3 --restart -q").exit_code, 0);
}

TEST_F(EvalCommand, FiguresOfAPaperAreShownBesideOurs) {
  const Ran ran =
      run_sheaf(scratch_, command(std::string(kMethods) +
                                  "paper: {table: 'P, table 1', scale: {boxes: 100}, rows: [{model: tiny, "
                                  "dataset: boxes, method: packed, quality: 0.649, throughput: 62}]}\n") +
                              " --limit 1");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find(" 64.9 "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("paper: P, table 1."), std::string::npos) << ran.out;
}

TEST_F(EvalCommand, ExtractionsAreScoredAndJudged) {
  scratch_.write("schema.yaml", "categories: {Tea: [{name: Brand}, {name: Weight}]}\n");
  std::string lines;
  for (const char* brand : {"Arn", "Birch"})
    lines += json{{"sku", brand},
                  {"title", std::string(brand) + " tea"},
                  {"category", "Tea"},
                  {"gold", {{"Brand", {brand}}, {"Weight", {"n/a"}}}}}
                 .dump() +
             "\n";
  scratch_.write("data/boxes.json", "");
  const std::string corpus = scratch_.write("data/teas.jsonl", lines);
  scratch_.write(
      "job.yaml",
      "model: {path: none}\ninput: {path: none.jsonl, id: sku, category: category, document: title}\n"
      "task: {kind: extract, schema: " +
          scratch_.path("schema.yaml") +
          "}\n"
          "method: {name: hpd, max_value_tokens: 4}\nengine: {device: cpu}\noutput: {path: none}\n");
  const std::string file = scratch_.write(
      "eval.yaml", "name: Teas\noutput: {path: " + scratch_.path("out") + "}\nmodels: [{name: tiny, path: " +
                       model_ + ", chat: plain}]\ndatasets: [{name: teas, job: " + scratch_.path("job.yaml") +
                       ", path: " + corpus + ", metric: attributes, judge: {model: " + model_ +
                       "}}]\nmethods: [{name: standard}, {name: hpd}]\n");
  const Ran ran = run_sheaf(scratch_, "eval --json --log-samples " + file);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json table = json::parse(ran.out);
  for (const json& row : table["rows"]) {
    const std::string folder = scratch_.path("out/tiny/teas/" + row["method"].get<std::string>());
    const Ran score =
        run_sheaf(scratch_, "score --json --metric attributes --gold " + corpus + " --pred " + folder);
    EXPECT_EQ(row["quality"], json::parse(score.out)["micro_f1"]) << score.err;
    EXPECT_EQ(row["unit"], "rows");
    EXPECT_FALSE(row.contains("llm_f1")) << "random weights judge nothing";
    const auto samples = read_json_lines(read_text(folder + "/samples.jsonl"));
    ASSERT_EQ(samples.size(), 4u);
    EXPECT_EQ(samples[0]["id"], "Arn/Brand");
    EXPECT_EQ(samples[0]["question"], "Brand");
    const auto requests = read_json_lines(read_text(folder + "/judge/requests.jsonl"));
    ASSERT_EQ(requests.size(), 2u);
    const std::string prompt = requests[1]["body"]["messages"][0]["content"].get<std::string>();
    EXPECT_NE(prompt.find("Birch tea"), std::string::npos) << prompt;
  }
  EXPECT_NE(ran.out.find("the judge's reply could not be read for 2 of 2 documents"), std::string::npos);
}

TEST(EvalJudge, RepliesAreCounted) {
  const TempFolder scratch;
  const auto reply = [](const char* id, const json& answer) {
    return json{{"id", id}, {"answer", answer}}.dump() + "\n";
  };
  std::filesystem::create_directory(scratch.path("judged"));
  scratch.write("judged/rows-00000.jsonl",
                reply("a", R"(Fine. <result>{"Brand": "correct", "Weight": "missing"}</result>)") +
                    reply("b", R"(<result>{"Brand": "hallucination", "Weight": "correct null"}</result>)") +
                    reply("c", "I cannot say.") + reply("d", nullptr));
  const Judgements judged = count_replies(scratch.path("judged"), 5);
  EXPECT_EQ(judged.asked, 5);
  EXPECT_EQ(judged.unread, 3) << "c, d and one that has no row";
  ASSERT_TRUE(judged.llm_f1);
  EXPECT_NEAR(*judged.llm_f1, 2.0 / 3, 1e-12) << "precision 2 of 3, recall 2 of 3";
}

TEST(EvalConfigs, AreReadWithoutModelsAndData) {
  const TempFolder scratch;
  int files = 0;
  for (const char* folder : {"configs/eval", "configs/papers"})
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.is_directory()) continue;
      const Ran ran = run_sheaf(scratch, "eval --check --data nowhere " + entry.path().string());
      EXPECT_EQ(ran.exit_code, 0) << ran.err;
      EXPECT_NE(ran.out.find("all keys are valid"), std::string::npos) << ran.out;
      ++files;
    }
  EXPECT_GE(files, 5);
}

TEST_F(EvalCommand, AMethodThatSkipsADatasetIsNotComparedThere) {
  const std::string methods = "methods: [{name: standard}, {name: ippd, skip: boxes}]\n";
  ASSERT_EQ(run_sheaf(scratch_, command(methods)).exit_code, 0);
  const Ran ran = run_sheaf(scratch_, command(methods) + " --differences standard ippd");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("no dataset is run with both standard and ippd"), std::string::npos) << ran.err;
}

TEST_F(EvalCommand, AMetricThatDoesNotFitIsRefusedBeforeTheFirstRun) {
  std::string asked = command();
  std::string text = read_text(scratch_.path("eval.yaml"));
  text.replace(text.find("metric: squad"), 13, "metric: quac");
  scratch_.write("eval.yaml", text);
  const Ran ran = run_sheaf(scratch_, asked);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("dataset boxes: the metric quac needs dialogs"), std::string::npos) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("out/tiny")));
}

TEST_F(EvalCommand, AModelMaySetKeysOnOneDataset) {
  const std::string command_of = command();
  const std::string file = scratch_.path("eval.yaml");
  std::string text = read_text(file);
  const std::string model = "chat: plain";
  text.replace(text.find(model), model.size(), model + ", set_on: {boxes: {method.max_value_tokens: 2}}");
  scratch_.write("eval.yaml", text);
  const Ran ran = run_sheaf(scratch_, command_of + " --method standard");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::string journal = read_text(run_folder("standard") + "/journal");
  EXPECT_NE(journal.find("\"max_value_tokens\":2"), std::string::npos) << journal.substr(0, 2000);
  text.replace(text.find("{boxes: {method"), 6, "{bxes");
  scratch_.write("eval.yaml", text);
  const Ran wrong = run_sheaf(scratch_, command_of);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("set_on \"bxes\" is not a dataset of this file; did you mean \"boxes\"?"),
            std::string::npos)
      << wrong.err;
}

TEST_F(EvalCommand, AModelMaySetKeysWithOneMethod) {
  const std::string command_of = command();
  std::string text = read_text(scratch_.path("eval.yaml"));
  const std::string model = "chat: plain";
  text.replace(text.find(model), model.size(),
               model + ", set_with: {standard: {method.max_value_tokens: 2}}");
  scratch_.write("eval.yaml", text);
  const Ran ran = run_sheaf(scratch_, command_of);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  for (const auto& entry : std::filesystem::directory_iterator(run_folder("standard") + "/..")) {
    const std::string label = entry.path().filename().string();
    const std::string journal = read_text(entry.path().string() + "/journal");
    EXPECT_EQ(journal.find("\"max_value_tokens\":2") != std::string::npos, label == "standard")
        << label << journal.substr(0, 2000);
  }
  text.replace(text.find("{standard: {method"), 9, "{standrd");
  scratch_.write("eval.yaml", text);
  const Ran wrong = run_sheaf(scratch_, command_of);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("set_with \"standrd\" is not the label of a method; did you mean \"standard\"?"),
            std::string::npos)
      << wrong.err;
}

}  // namespace
}  // namespace sheaf

// Names in gold answers, predictions, evaluations, hardware lists and reports that would command a terminal
// or a browser.
#include <fmt/format.h>

#include "tests/app/hostile.h"
#include "tests/task/made_up_report.h"
#include "tests/task/well_formed.h"

namespace sheaf {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using test::as_json;
using test::hostile_texts;
using test::quoted;
using test::Ran;
using test::run_clean;

TEST(HostileNames, InGoldAndPredictionsAreEscaped) {
  const TempFolder scratch;
  std::string gold, pairs;
  gold += json{{"id", "q"}, {"answers", {"x"}}}.dump() + "\n";
  json predictions{{"q", "x"}}, other{{"q", "y"}};
  for (const std::string& each : hostile_texts()) {
    gold += json{{"id", each}, {"answers", {each}}}.dump() + "\n";
    pairs += json{{"id", each}, {"category", each}, {"gold", {{each, {each}}}}}.dump() + "\n";
    predictions[each + "?"] = each;
    other[each] = each;
  }
  const std::string answers = scratch.write("gold.jsonl", gold),
                    attributes = scratch.write("pairs.jsonl", pairs);
  const std::string pred = scratch.write("p\x1b[2J.json", predictions.dump()),
                    good = scratch.write("g.json", other.dump());
  const std::string squad = "score --metric squad1 --gold " + answers + " --pred ";
  const Ran named = run_clean(scratch, squad + quoted(pred), 0);
  EXPECT_NE(named.err.find("without a prediction"), std::string::npos) << named.err;
  run_clean(scratch, squad + good + " --against " + quoted(pred) + " --json", 0);
  std::string rows;
  for (const std::string& each : hostile_texts())
    rows += json{{"id", each}, {"category", each}, {"values", {{each, each}}}}.dump() + "\n";
  std::filesystem::create_directory(scratch.path("run"));
  scratch.write("run/rows-00000.jsonl", rows);
  const std::string groups =
      "score --metric attributes --gold " + attributes + " --pred " + scratch.path("run");
  const Ran table = run_clean(scratch, groups, 0);
  EXPECT_NE(table.out.find("a\\nsheaf: fine"), std::string::npos) << table.out;
  EXPECT_TRUE(
      json::parse(run_clean(scratch, groups + " --json", 0).out)["groups"].contains("a\nsheaf: fine"));
  for (const std::string& each : hostile_texts())
    run_clean(scratch, "score --metric " + quoted(each) + " --gold " + answers + " --pred " + good, 2);
}

std::string make_run(const TempFolder& scratch, const std::string& name, const std::string& text) {
  std::filesystem::create_directory(scratch.path(name));
  ordered_json report = report_json(test::made_up_report(4, text));
  for (const char* key : {"job", "model", "backend", "method", "chat"}) report[key] = text;
  scratch.write(name + "/report.json", report.dump());
  return quoted(scratch.path(name));
}

TEST(HostileNames, InReportsAreEscaped) {
  const TempFolder scratch;
  const std::string plain = make_run(scratch, "plain", "x");
  const auto lines = [](const Ran& ran) { return std::count(ran.out.begin(), ran.out.end(), '\n'); };
  const auto usual =
      lines(run_clean(scratch, "report " + plain + " " + plain + " --out " + scratch.path("x.html"), 0));
  const std::string script = "</title><script>alert(1)</script>";
  for (const std::string& each : hostile_texts()) {
    std::filesystem::remove_all(scratch.path("a" + each));
    const std::string a = make_run(scratch, "a" + each, each), b = make_run(scratch, "b", script + each);
    run_clean(scratch, "report " + a, 0);
    const std::string page = scratch.path("both.html");
    const Ran both = run_clean(scratch, "report " + a + " " + b + " --out " + page, 0);
    EXPECT_EQ(lines(both), usual) << both.out;
    EXPECT_EQ(read_text(page).find("<script"), std::string::npos);
    EXPECT_EQ(test::xml_fault(read_text(page)), "");
    run_clean(scratch, "report " + b, 0);
    EXPECT_EQ(read_text(scratch.path("b/report.html")).find("<script"), std::string::npos);
    scratch.write("b/report.json", json{{"version", each}}.dump());
    run_clean(scratch, "report " + b, 2);
    scratch.write("b/report.json", each);
    run_clean(scratch, "report " + b, 2);
  }
}

TEST(HostileNames, InEvaluationsAreEscaped) {
  const TempFolder scratch;
  const std::string model = test::make_tiny_model(scratch);
  scratch.write("job.yaml",
                "model: {path: none}\ninput: {path: none.json, format: squad}\ntask: {kind: ask}\n"
                "method: {name: ippd, max_value_tokens: 4, temperature: 1}\nengine: {device: cpu}\noutput: "
                "{path: none}\n");
  json questions = json::array();
  std::string context;
  for (const std::string& each : hostile_texts()) {
    context += each + " ";
    questions.push_back(
        {{"id", each}, {"question", each + "?"}, {"answers", json::array({{{"text", each}}})}});
  }
  const json paragraphs = json::array({{{"context", context}, {"qas", questions}}});
  const json data{{"version", "v2.0"}, {"data", json::array({{{"title", "T"}, {"paragraphs", paragraphs}}})}};
  const std::string path = scratch.write("d\x1b[2J.json", data.dump());
  const auto eval = [&](const std::string& title, const std::string& name, const std::string& label) {
    const auto text = [](const std::string& of) { return json(of).dump(-1, ' ', true); };
    return "eval " +
           scratch.write("eval.yaml",
                         "name: " + text(title) + "\noutput: {path: " + text(scratch.path("out\x1b[2J")) +
                             "}\nbaseline: standard\nmodels:\n  - {name: " + text(name) + ", path: " + model +
                             ", chat: plain}\ndatasets:\n  - {name: d, job: " + scratch.path("job.yaml") +
                             ", path: " + text(path) +
                             ", metric: squad}\nmethods: [{name: standard}, {label: " + text(label) +
                             ", name: standard, temperature: 1.5, seed: 3}]\n");
  };
  for (const std::string& each : hostile_texts()) {
    run_clean(scratch, eval("T", each, "other"), 2);
    run_clean(scratch, eval("T", "tiny", each), 2);
    run_clean(scratch, eval("T", "tiny", "other") + " --model " + quoted(each), 2);
    run_clean(scratch, eval("T", "tiny", "other") + " --model " + quoted("tiny=" + each), 2);
  }
  for (const char* option : {"--model tiny=", "--data ", "--output "})
    run_clean(scratch, eval("T", "tiny", "other") + " " + option + quoted("\xff"), 2);
  const std::string command = eval("<script>\x1b[2J\n# forged", "tiny", "-other");
  run_clean(scratch, command + " --check", 0);
  run_clean(scratch, command, 0);
  EXPECT_TRUE(json::accept(run_clean(scratch, command + " --json", 0).out));
  run_clean(scratch, command + " --differences standard -- -other", 2);
  const std::string out = scratch.path("out\x1b[2J/");
  EXPECT_EQ(read_text(out + "table.html").find("<script"), std::string::npos);
  EXPECT_EQ(read_text(out + "differences.html").find("<script"), std::string::npos);
  EXPECT_EQ(test::xml_fault(read_text(out + "table.html")), "");
  EXPECT_TRUE(read_text(out + "table.md").starts_with("# \\<script>\\\\x1b\\[2J\\\\n# forged\n"));
  EXPECT_NE(read_text(out + "table.csv").find("tiny,d,'-other,"), std::string::npos)
      << read_text(out + "table.csv");
  const std::string shown = eval("T", "tiny", "wild");
  run_clean(scratch, shown + " -q --json", 0);
  run_clean(scratch, shown + " --differences standard wild", 0);
  EXPECT_TRUE(json::accept(run_clean(scratch, shown + " --differences standard wild --json", 0).out));
}

TEST(HostileNames, InHardwareListsAreEscaped) {
  const TempFolder scratch;
  for (const std::string& each : hostile_texts()) {
    const std::string name = json(each).dump(-1, ' ', true);
    std::string list = read_text("configs/hardware.yaml");
    for (const std::string known : {"title: NVIDIA L4, 24 GB", "{name: AWS g6.xlarge,", "  l4:"}) {
      const size_t at = list.find(known);
      ASSERT_NE(at, std::string::npos) << known;
      const bool key = known == "  l4:";
      const size_t value = key ? 2 : known.find(": ") + 2,
                   end = key ? 4 : known.size() - (known.back() == ',' ? 1 : 0);
      list.replace(at + value, end - value, name);
    }
    std::filesystem::create_directory_symlink(std::filesystem::absolute("configs/devices"),
                                              scratch.path("devices"));
    const std::string estimate =
        "estimate --document-tokens 100 --model qwen3-0.6b --rows 10 --hardware-file " +
        scratch.write("hardware.yaml", list) + " --hardware ";
    run_clean(scratch, estimate + quoted(each), 0);
    run_clean(scratch, estimate + quoted(each + ",h200"), 0);
    EXPECT_TRUE(json::accept(run_clean(scratch, estimate + quoted(each) + " --json", 0).out));
    run_clean(scratch, estimate + "none", 2);
    list.replace(list.find("\"2025-07\""), 9, name);
    scratch.write("hardware.yaml", list);
    run_clean(scratch, estimate + "h200", 2);
    std::filesystem::remove(scratch.path("devices"));
  }
}

TEST(HostileNames, InBrokenDatasetsAreEscaped) {
  const TempFolder scratch;
  for (const std::string& each : hostile_texts()) {
    const std::string line = json{{"id", each}, {"question", each}, {"paragraphs", each}}.dump() + "\n";
    const std::string in = scratch.write("m" + each + ".jsonl", line);
    run_clean(scratch, "convert musique " + quoted(in) + " " + scratch.path("c.jsonl"), 2);
  }
}

}  // namespace
}  // namespace sheaf

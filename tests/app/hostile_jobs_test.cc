// Names in job files, schemas and corpora that would command a terminal, through every command that shows
// them.
#include <fstream>

#include "tests/app/hostile.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::as_json;
using test::hostile_texts;
using test::kHostile;
using test::quoted;
using test::Ran;
using test::run_clean;

TEST(HostileNames, InArgumentsAndPathsAreEscaped) {
  const TempFolder scratch;
  for (const std::string& each : kHostile) {
    const std::string name = quoted(scratch.path(each)), text = quoted(each);
    run_clean(scratch, text, 2);
    run_clean(scratch, "run " + quoted("--" + each), 2);
    run_clean(scratch, "run configs/demo.yaml --set " + quoted(each + "=1"), 2);
    run_clean(scratch, "run configs/demo.yaml --set " + quoted("method.name=" + as_json(valid_utf8(each))),
              2);
    run_clean(scratch, "run configs/demo.yaml --shard " + text, 2);
    run_clean(scratch, "run configs/demo.yaml --log " + quoted(scratch.path("no/" + each)), 2);
    for (const char* command :
         {"run ", "plan ", "verify ", "inspect ", "report ", "eval ", "estimate ", "bench "})
      run_clean(scratch, command + name, 2);
    run_clean(scratch, "tokenize --model " + name, 2);
    run_clean(scratch, "merge " + name + " " + name + "x", 2);
    run_clean(scratch, "estimate --document-tokens 100 --model " + name, 2);
    run_clean(scratch, "estimate --document-tokens 100 --model qwen3-8b --hardware " + text, 2);
    run_clean(scratch, "estimate --document-tokens 100 --model qwen3-8b --hardware-file " + name, 2);
    run_clean(scratch, "convert squad " + name + " " + scratch.path("out.jsonl"), 2);
    run_clean(scratch, "score --metric squad --gold " + name + " --pred " + name, 2);
    run_clean(scratch, "doctor " + name, 0);
    const Ran doctor = run_clean(scratch, "doctor --json " + name, 0);
    EXPECT_TRUE(json::accept(doctor.out));
  }
}

TEST(HostileNames, InJobFilesAreEscaped) {
  const TempFolder scratch;
  for (const std::string& each : kHostile) {
    std::vector<std::string> texts = {"\"" + each + "\": 1\n", "model: {\"" + each + "\": 1}\n", each + ": [",
                                      "&x " + each, "model: !" + each + " x\n"};
    if (valid_prefix(each) == each.size()) {
      const std::string value = json(each).dump(-1, ' ', true);  // escaped, so that YAML takes it
      texts.push_back("model: {" + value + ": 1}\n");
      for (const char* key : {"model.path", "model.chat", "input.path", "input.format", "task.kind",
                              "task.schema", "method.name", "engine.device", "output.format"}) {
        const std::string section(key, std::string_view(key).find('.')), rest = key + section.size() + 1;
        texts.push_back(section + ": {" + rest + ": " + value + "}\n");
      }
    }
    for (const std::string& text : texts) run_clean(scratch, "run " + scratch.write("job.yaml", text), 2);
    run_clean(scratch, "run " + quoted(scratch.write(each + ".yaml", "model: 1\n")), 2);
  }
}

TEST(HostileNames, InSchemasAreEscaped) {
  const TempFolder scratch;
  const std::string job = "plan configs/demo.yaml --set task.schema=" + scratch.path("s.yaml");
  for (const std::string& each : hostile_texts()) {
    const std::string name = json(each).dump(-1, ' ', true);
    for (const std::string& text :
         {"categories: {" + name + ": [A, A]}\n", "categories: {X: [" + name + ", " + name + "]}\n",
          "categories: {X: [{name: A, type: " + name + "}]}\n", name + ": 1\n",
          "attributes: {" + name + ": 2}\n"}) {
      scratch.write("s.yaml", text);
      run_clean(scratch, job, 2);
    }
  }
}

/// A job of one document and attribute for each hostile text, which are names of everything.
std::string write_job(const TempFolder& scratch, const std::string& corpus, const std::string& out) {
  std::string schema = "categories:\n", rows;
  for (const std::string& each : hostile_texts()) {
    const std::string name = json(each).dump(-1, ' ', true);
    schema += "  " + name + ": [{name: " + name + ", type: text}]\n";
    rows += json{{"id", each}, {"kind", each}, {"text", each}, {each, each}}.dump() + "\n";
  }
  rows += json{{"id", "\x1b[2J"}, {"kind", "\x1b[2J none"}, {"text", "x"}}.dump() + "\n";
  scratch.write("schema.yaml", schema);
  std::filesystem::create_directory(corpus);
  std::ofstream(corpus + "/\x1b[2J\nsheaf: fine.jsonl") << rows;
  return scratch.write(
      "job.yaml", "model: {path: " + test::make_tiny_model(scratch) +
                      ", chat: plain}\ninput: {path: " + json(corpus).dump(-1, ' ', true) +
                      ", format: jsonl, id: id, category: kind, document: text}\n"
                      "task: {kind: extract, schema: " +
                      scratch.path("schema.yaml") +
                      "}\nmethod: {name: hpd, max_value_tokens: 6, temperature: 1}\nengine: {device: cpu}\n"
                      "output: {path: " +
                      json(out).dump(-1, ' ', true) + "}\n");
}

TEST(HostileNames, InCorporaAreEscapedByEveryCommand) {
  const TempFolder scratch;
  const std::string corpus = scratch.path("corpus\x1b[2J\nsheaf: fine"),
                    out = scratch.path("out\x1b]0;x\x07\nsheaf: fine");
  const std::string job = write_job(scratch, corpus, out);
  const std::string file = corpus + "/\x1b[2J\nsheaf: fine.jsonl";
  run_clean(scratch, "inspect " + quoted(file), 0);
  const Ran inspected = run_clean(scratch, "inspect --json " + quoted(file), 0);
  EXPECT_EQ(json::parse(inspected.out)["path"], file) << "escapes leave the value as it is";
  const Ran plan = run_clean(scratch, "plan " + job, 1);
  EXPECT_NE(plan.out.find("  a\\nsheaf: fine "), std::string::npos) << plan.out;
  const Ran planned = run_clean(scratch, "plan --json " + job, 1);
  EXPECT_TRUE(
      json::parse(planned.out)["bins"].contains("\xc2\x9b"
                                                "31m"))
      << planned.out;
  const Ran dump = run_clean(scratch, "plan --dump 9 " + job, 1);
  EXPECT_EQ(test::read_json_lines(dump.out).size(), 6u);
  run_clean(scratch, "estimate " + job + " --set engine.device=cpu --hardware h200", 0);
  run_clean(scratch, "verify " + job, 1);
  run_clean(scratch, "verify --json " + job, 1);
  run_clean(scratch, "run " + job, 1);
  run_clean(scratch, "run " + job, 1);  // was finished before
  EXPECT_TRUE(json::accept(run_clean(scratch, "run --json " + job, 1).out));
  run_clean(scratch, "run --set method.max_value_tokens=7 " + job, 2);  // another job
  run_clean(scratch, "report " + quoted(out), 0);
  const std::string rows = read_text(out + "/rows-00000.jsonl");
  EXPECT_NE(rows.find("\xc2\x9b"
                      "31m"),
            std::string::npos)
      << "files are data";
  const std::string page = read_text(out + "/report.html");
  EXPECT_EQ(page.find('\x1b'), std::string::npos);

  std::ofstream(out + "/report\x1b[2J") << "x";
  std::string titles;
  for (const std::string& each : hostile_texts())
    titles += json{{"number", each}, {"title", "title of " + each}}.dump() + "\n";
  const Ran ran = test::run_shell(scratch, "tools/show-rows " + quoted(out) + " 9 --titles " +
                                               scratch.write("titles.jsonl", titles) + " --id number 2>&1");
  ASSERT_EQ(ran.exit_code, 0) << ran.out;
  const std::string& shown = ran.out;
  test::expect_clean(shown);
  EXPECT_NE(shown.find("\\x9b31m"), std::string::npos);
  EXPECT_NE(shown.find("title of \\x9b31m"), std::string::npos) << shown;
}

}  // namespace
}  // namespace sheaf

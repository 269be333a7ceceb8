// The program as its user meets it.
#include <gtest/gtest.h>
#include <set>

#include "io/machine/backend_kinds.h"
#include "tests/app/running.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;

TEST(Program, SaysWhatItWasBuiltWith) {
  const TempFolder scratch;
  const Ran ran = run_sheaf(scratch, "--version");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out.rfind("sheaf ", 0), 0u);
  EXPECT_NE(ran.out.find("CUDA"), std::string::npos);
}

TEST(Program, HelpIsPrintedAndUnknownWordsAreRefused) {
  const TempFolder scratch;
  EXPECT_EQ(run_sheaf(scratch, "--help").exit_code, 0);
  EXPECT_EQ(run_sheaf(scratch, "help").out, run_sheaf(scratch, "--help").out);
  const Ran help = run_sheaf(scratch, "help run");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.out, run_sheaf(scratch, "run --help").out);
  EXPECT_EQ(run_sheaf(scratch, "help frobnicate").exit_code, 2);
  const Ran key = run_sheaf(scratch, "help job engine.kv_store.gb");
  EXPECT_EQ(key.exit_code, 0);
  EXPECT_NE(key.out.find("  takes       0.001 to 1000000\n  default     50"), std::string::npos) << key.out;
  EXPECT_NE(run_sheaf(scratch, "help job engine").out.find("engine.window "), std::string::npos);
  EXPECT_EQ(run_sheaf(scratch, "help job engine.windw").exit_code, 2);
  const Ran of_schema = run_sheaf(scratch, "help job anchor");
  EXPECT_NE(of_schema.out.find("in the schema file (task.schema), not in the job"), std::string::npos)
      << of_schema.out << of_schema.err;
  EXPECT_EQ(run_sheaf(scratch, "help job attributes").exit_code, 0);
  const Ran both = run_sheaf(scratch, "help job locale");
  EXPECT_NE(both.out.find("input.locale"), std::string::npos) << both.out;
  EXPECT_NE(both.out.find("schema file"), std::string::npos) << both.out;
  EXPECT_EQ(run_sheaf(scratch, "").exit_code, 2);
  EXPECT_EQ(run_sheaf(scratch, "frobnicate").exit_code, 2);
  EXPECT_EQ(run_sheaf(scratch, "run").exit_code, 2);
  const Ran missing = run_sheaf(scratch, "run nowhere.yaml");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("nowhere.yaml"), std::string::npos);
}

TEST(Program, HelpFindsAKeyByItsEnd) {
  const TempFolder scratch;
  for (const auto& [asked, key] : {std::pair("locale", "input.locale"), {"trust.run", "task.trust.run"}}) {
    const Ran ran = run_sheaf(scratch, std::string("help job ") + asked);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_NE(ran.out.find(key), std::string::npos) << ran.out;
  }
  const Ran several = run_sheaf(scratch, "help job path");
  EXPECT_NE(several.out.find("input.path"), std::string::npos) << several.out;
  EXPECT_NE(several.out.find("output.path"), std::string::npos) << several.out;
}

TEST(Program, ErrorsOfAJobFileNameTheLine) {
  const TempFolder scratch;
  std::string text = read_text("configs/demo.yaml");
  const size_t at = text.find("  stacking:");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 11, "  staking: ");
  const auto line =
      std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'));
  const Ran ran = run_sheaf(
      scratch, "run " + scratch.write("job.yaml", text) + " --set task.schema=configs/schemas/catalog.yaml");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("job.yaml:" + line), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("stacking"), std::string::npos) << ran.err;
}

TEST(Run, ADeviceThatIsNotThereIsRefused) {
  NEED_MODEL();
  const TempFolder scratch;
  const Ran ran =
      run_sheaf(scratch, "run configs/demo.yaml --device cuda:99 --set output.path=" + scratch.path("o"));
  // Another machine may have it, but none helps a program without CUDA.
  EXPECT_EQ(ran.exit_code, backend_kind(Device::Kind::cuda).missing.empty() ? 3 : 2);
  EXPECT_NE(ran.err.find("cuda:99"), std::string::npos) << ran.err;
}

const char* const kTypes = "configs/schemas/catalog.yaml";

TEST(Run, WritesTypedRowsInInputOrderAndAReport) {
  NEED_MODEL();
  const TempFolder scratch;
  const std::string options =
      " --limit 4 --set method.max_value_tokens=12 --set output.logprobs=true --set output.path=";
  const Ran ran = run_sheaf(scratch, "run configs/demo.yaml" + options + scratch.path("out"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_TRUE(std::filesystem::exists(kTypes));
  const auto rows = read_json_lines(read_text(scratch.path("out/rows-00000.jsonl")));
  const auto corpus = read_json_lines(read_text("datasets/catalog/catalog.jsonl"));
  ASSERT_EQ(rows.size(), 4u);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["id"], corpus[i]["sku"]);
    EXPECT_EQ(rows[i]["category"], corpus[i]["category"]);
    std::set<std::string> wanted, got;
    for (const auto& [name, value] : corpus[i]["gold"].items()) wanted.insert(name);
    for (const auto& [name, value] : rows[i]["values"].items()) {
      got.insert(name);
      EXPECT_LT(rows[i]["logprobs"][name].get<double>(), 1e-6);
    }
    EXPECT_EQ(got, wanted);
  }
  const json report = json::parse(read_text(scratch.path("out/report.json")));
  EXPECT_EQ(report["rows"], 4);
  EXPECT_GT(report["tokens"]["saved"].get<int64_t>(), 0);
  EXPECT_EQ(report["tokens"]["computed"],
            report["tokens"]["prefill"].get<int64_t>() + report["tokens"]["decode"].get<int64_t>());
  EXPECT_NE(ran.out.find("report.json"), std::string::npos);

  const Ran again = run_sheaf(scratch, "run configs/demo.yaml" + options + scratch.path("out"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("is already finished: 4 rows"), std::string::npos) << again.err;
  EXPECT_EQ(json::parse(read_text(scratch.path("out/report.json"))), report) << "nothing may be done again";
}

TEST(Run, WholeObjectsBecomeTypedRowsToo) {
  NEED_MODEL();
  const TempFolder scratch;
  for (const char* method : {"standard", "prefix"}) {
    const Ran ran =
        run_sheaf(scratch, std::string("run configs/demo.yaml --restart --limit 2 --set method.keys=name") +
                               " --set method.max_value_tokens=2 --set method.name=" + method +
                               " --set output.path=" + scratch.path("out"));
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const auto rows = read_json_lines(read_text(scratch.path("out/rows-00000.jsonl")));
    ASSERT_EQ(rows.size(), 2u);
    for (const json& row : rows) EXPECT_GE(row["values"].size(), 8u);
  }
}

TEST(Run, BadRowsAreRejectsAndTheOthersAreAnswered) {
  NEED_MODEL();
  const TempFolder scratch;
  std::string long_document(60000, 'x');
  for (size_t i = 0; i < long_document.size(); i += 5) long_document[i] = ' ';
  const std::string corpus = scratch.write(
      "corpus.jsonl", R"({"sku": 1, "category": "Tea", "title": "Mint tea, 20 bags"})"
                      "\n"
                      "{not json}\n"
                      R"({"sku": 3, "category": "Spaceships", "title": "A rocket"})"
                      "\n"
                      R"({"sku": 4, "category": "Tea"})"
                      "\n"
                      R"({"sku": 5, "category": "Tea", "title": ")" +
                          long_document +
                          "\"}\n"
                          R"({"sku": 6, "category": "Tea", "title": "Green tea <|im_end|> 4 oz"})"
                          "\n");
  const Ran ran = run_sheaf(
      scratch,
      "run configs/demo.yaml --set method.max_value_tokens=4 --set input.document=title --set input.path=" +
          corpus + " --set output.path=" + scratch.path("out"));
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_NE(
      ran.out.find("rejects 4 of 6 records (67 %); all are in " + scratch.path("out/rejects.jsonl") + "\n"),
      std::string::npos)
      << ran.out;
  const auto rows = read_json_lines(read_text(scratch.path("out/rows-00000.jsonl")));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["id"], 1);
  EXPECT_EQ(rows[1]["id"], 6);
  std::set<int> places;
  for (const json& reject : read_json_lines(read_text(scratch.path("out/rejects.jsonl")))) {
    places.insert(reject["row"].get<int>());
    EXPECT_FALSE(reject["reason"].get<std::string>().empty());
  }
  EXPECT_EQ(places, (std::set<int>{2, 3, 4, 5}));
}

TEST(Run, AnswersQuestionsWithinTheirOptions) {
  NEED_MODEL();
  const TempFolder scratch;
  const Ran ran =
      run_sheaf(scratch, "run configs/ask-choice.yaml --limit 2 --set output.path=" + scratch.path("out"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  int answers = 0;
  for (const json& row : read_json_lines(read_text(scratch.path("out/rows-00000.jsonl")))) {
    for (const json& answer : row["answers"]) {
      ++answers;
      const std::string letter = answer["answer"];
      EXPECT_EQ(letter.size(), 1u);
      EXPECT_TRUE(letter[0] >= 'A' && letter[0] <= 'H') << letter;
      EXPECT_TRUE(answer["option"].is_string());
    }
  }
  EXPECT_GT(answers, 6);
}

TEST(Run, ASignalStopsItWithExitCode130) {
  NEED_MODEL();
  const TempFolder scratch;
  // One row a window, so that rows are written long before the last.
  test::Running job(
      "run configs/extract.yaml --quiet --set engine.window=1 --set output.path=" + scratch.path("out"),
      test::stop_at_group(2));
  ASSERT_TRUE(job.stopped());
  EXPECT_GT(std::filesystem::file_size(scratch.path("out/rows-00000.jsonl.part")), 0u);
  job.send(SIGTERM);
  EXPECT_EQ(job.end(), 130);
  EXPECT_FALSE(std::filesystem::exists(scratch.path("out/rows-00000.jsonl")))
      << "an unfinished file under its final name";
}

TEST(Plan, ShowsAPromptAsText) {
  NEED_MODEL();
  const TempFolder scratch;
  const Ran ran = run_sheaf(scratch, "plan configs/demo.yaml --limit 4 --prompt 1");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_TRUE(
      ran.out.starts_with("prompt 1: 8 answers to decode, 282 tokens\n0 instruction, 187 tokens\n"
                          "    <|im_start|>system\n"))
      << ran.out;
  for (const char* part : {"\n1 document of BC-1469, 56 tokens, sees 0\n    Barnaby's Mill Dark Chocolate",
                           "\n      \"Brand\":[answer: at most 30 tokens]\n", "[option: \"flakes\"]"})
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
  EXPECT_TRUE(ran.err.starts_with("4 records in 4 bins, 4 prompts")) << ran.err;
  const Ran choice = run_sheaf(scratch, "plan configs/ask-choice.yaml --limit 1 --prompt 1");
  EXPECT_NE(choice.out.find("[answer: one of A, B, C, D]"), std::string::npos) << choice.out;
  const Ran beyond = run_sheaf(scratch, "plan configs/demo.yaml --limit 4 --prompt 5");
  EXPECT_EQ(beyond.exit_code, 2);
  EXPECT_NE(beyond.err.find("--prompt 5: the job has only 4 prompts"), std::string::npos) << beyond.err;
}

TEST(Plan, CountsWithoutDecodingAndDumpsGraphs) {
  NEED_MODEL();
  const TempFolder scratch;
  const Ran ran = run_sheaf(
      scratch, "plan configs/extract.yaml --json --dump 3 --dump-to " + scratch.path("graphs.jsonl"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json plan = json::parse(ran.out);
  EXPECT_EQ(plan["records"], 252);
  EXPECT_EQ(plan["bins"].size(), 10u);
  EXPECT_GT(plan["tokens_one_prompt_per_question"].get<int64_t>(),
            4 * plan["tokens_computed"].get<int64_t>());
  const auto graphs = read_json_lines(read_text(scratch.path("graphs.jsonl")));
  ASSERT_EQ(graphs.size(), 3u);
  for (const json& graph : graphs) {
    for (const json& segment : graph["segments"]) {
      EXPECT_TRUE(segment["tokens"].is_array());
      for (const json& seen : segment["sees"]) EXPECT_LT(seen.get<int>(), segment["id"].get<int>());
    }
    EXPECT_GT(graph["slots"].size(), 8u);
    for (const json& slot : graph["slots"]) {
      if (slot.contains("allowed")) continue;  // an option has its own length
      EXPECT_GT(slot["max_tokens"].get<int>(), 8) << "the assumed length leaked";
    }
  }
}

}  // namespace
}  // namespace sheaf

// `sheaf convert` as a person calls it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/app/program.h"
#include "tests/datasets/samples.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::run_sheaf;

TEST(ConvertCommand, PrintsWhatItWrote) {
  const TempFolder scratch;
  const std::string in = scratch.write("dev.json", sample("squad").text), out = scratch.path("c.parquet");
  const auto ran = run_sheaf(scratch, "convert squad " + in + " " + out);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "2 contexts with 3 questions, 1 of them unanswerable, in " + out + "\n");
  const auto counts = run_sheaf(scratch, "convert squad " + in + " " + out + " --json --limit 1");
  EXPECT_EQ(json::parse(counts.out),
            json({{"records", 1}, {"questions", 2}, {"unanswerable", 1}, {"rejects", 0}, {"path", out}}));
}

TEST(ConvertCommand, BrokenEntriesAreExitCodeOneAndNamed) {
  const TempFolder scratch;
  const std::string in = scratch.write("m.jsonl", sample("musique").text + "{\"id\": 1}\n");
  const auto ran = run_sheaf(scratch, "convert musique " + in + " " + scratch.path("c.jsonl"));
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.err, in + ":3: no \"paragraphs\"\n");
  EXPECT_NE(ran.out.find("; left out 1 broken entry"), std::string::npos) << ran.out;
}

TEST(ConvertCommand, ABookIsNotTakenForADataset) {
  const TempFolder scratch;
  const std::string squad = scratch.write("dev.json", sample("squad").text);
  const auto ran =
      run_sheaf(scratch, "convert needle " + squad + " " + scratch.path("c.jsonl") + " --length 3");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("looks like squad; needle needs a book as plain text"), std::string::npos)
      << ran.err;
}

TEST(ConvertCommand, AnotherFormatIsNamedAndNothingIsWritten) {
  const TempFolder scratch;
  const std::string squad = scratch.write("dev.json", sample("squad").text), out = scratch.path("c.jsonl");
  const auto ran = run_sheaf(scratch, "convert quac " + squad + " " + out);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(ran.err,
            "sheaf: " + squad +
                ": this is not a QuAC file: its questions have neither \"yesno\" nor \"followup\"; it looks "
                "like squad\n");
  const std::string broken = scratch.write("b.json", R"({"data": [{"paragraphs": [{"qas": []}]}]})");
  const auto none = run_sheaf(scratch, "convert squad " + broken + " " + out);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.err, broken + ": article 1, paragraph 1: no \"context\"\nsheaf: " + broken +
                          ": none of its 1 entries can be read as squad; nothing was written\n");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(ConvertCommand, MistakesAreExitCodeTwo) {
  const TempFolder scratch;
  const std::string in = scratch.write("dev.json", sample("squad").text), out = scratch.path("c.jsonl");
  for (const std::string& arguments :
       {"squad " + in + " " + scratch.path("c.txt"), "squad " + in + " " + out + " --turns 1",
        "drop " + in + " " + out, "squad missing.json " + out, "squat " + in + " " + out,
        "needle " + in + " " + out, "squad " + in + " " + out + " --schema " + scratch.path("s.yaml")}) {
    const auto ran = run_sheaf(scratch, "convert " + arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments << ran.out;
    EXPECT_FALSE(ran.err.empty()) << arguments;
    EXPECT_FALSE(std::filesystem::exists(out)) << arguments;
  }
}

TEST(DatasetJob, ShardsOfADatasetJoinToTheWholeRun) {
  const TempFolder scratch;
  std::string lines;
  for (int i = 0; i < 9; ++i)
    lines +=
        i == 4 ? "{}\n"
               : fmt::format(
                     "{{\"id\": \"m{}\", \"question\": \"Who built it?\", \"answer\": \"a\", \"paragraphs\": "
                     "[{{\"title\": \"t\", \"paragraph_text\": \"p{}\"}}]}}\n",
                     i, i);
  const std::string job = scratch.write(
      "job.yaml", "model: {path: " + test::make_tiny_model(scratch) +
                      "}\ninput: {path: " + scratch.write("m.jsonl", lines) +
                      ", format: musique}\ntask: {kind: ask}\nmethod: {name: ippd, max_value_tokens: 4}\n"
                      "engine: {window: 2}\n"
                      "output: {path: " +
                      scratch.path("whole") + "}\n");
  const auto whole = run_sheaf(scratch, "run -q --device cpu " + job);
  ASSERT_EQ(whole.exit_code, 1) << whole.err;
  for (const std::string shard : {"0", "1", "2"}) {
    const auto ran = run_sheaf(scratch, "run -q --device cpu " + job + " --shard " + shard +
                                            "/3 --set output.path=" + scratch.path("shard" + shard));
    EXPECT_LE(ran.exit_code, 1) << ran.err;
  }
  const auto merged = run_sheaf(scratch, "merge " + scratch.path("merged") + " " + scratch.path("shard0") +
                                             " " + scratch.path("shard1") + " " + scratch.path("shard2"));
  ASSERT_EQ(merged.exit_code, 1) << merged.err;
  const std::string rows = read_text(scratch.path("whole/rows-00000.jsonl"));
  EXPECT_EQ(test::read_json_lines(rows).size(), 8u);
  std::string joined;
  for (int file = 0; std::filesystem::exists(scratch.path(fmt::format("merged/rows-0000{}.jsonl", file)));
       ++file)
    joined += read_text(scratch.path(fmt::format("merged/rows-0000{}.jsonl", file)));
  EXPECT_EQ(joined, rows);
  EXPECT_EQ(read_text(scratch.path("merged/rejects.jsonl")), read_text(scratch.path("whole/rejects.jsonl")));
}

}  // namespace
}  // namespace sheaf

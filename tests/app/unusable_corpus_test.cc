// A corpus of which nothing or little is left is no success, and the program says why.
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;

class UnusableCorpus : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch_) +
                                   ", chat: plain}\ninput: {path: " + scratch_.path("corpus.jsonl") +
                                   ", id: n, context: c, question: q}\n"
                                   "task: {kind: ask, instruction: Tell}\n"
                                   "method: {name: ippd, max_value_tokens: 4}\n"
                                   "engine: {device: cpu}\noutput: {path: " +
                                   scratch_.path("out") + "}\n");
  }

  Ran sheaf(const std::string& command, const std::string& more = "") {
    return run_sheaf(scratch_, command + " " + scratch_.path("job.yaml") + " " + more);
  }
  bool succeeded() const { return std::filesystem::exists(scratch_.path("out/_SUCCESS")); }
  static std::string good(int n) { return json{{"n", n}, {"c", "A box."}, {"q", "What?"}}.dump() + "\n"; }

  TempFolder scratch_;
};

TEST_F(UnusableCorpus, AnEmptyCorpusFails) {
  scratch_.write("corpus.jsonl", "");
  for (const char* command : {"run", "plan"}) {
    const Ran ran = sheaf(command);
    EXPECT_EQ(ran.exit_code, 2) << command;
    EXPECT_NE(ran.err.find("the corpus has no records"), std::string::npos) << ran.err;
    EXPECT_FALSE(succeeded());
    EXPECT_EQ(sheaf("plan", "--allow-empty").exit_code, 0);
  }
  EXPECT_EQ(sheaf("run", "--allow-empty").exit_code, 0);
  EXPECT_TRUE(succeeded());
}

TEST_F(UnusableCorpus, ARunThatRejectsEveryRecordFails) {
  scratch_.write("corpus.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3,\"c\":\"\",\"q\":\"What?\"}\nnot JSON\n");
  const Ran ran = sheaf("run");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("all 4 records were rejected: 2 × "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("(corpus.jsonl:1)"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("all are in " + scratch_.path("out/rejects.jsonl")), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("--allow-empty"), std::string::npos) << ran.err;
  EXPECT_FALSE(succeeded());
  EXPECT_EQ(test::read_json_lines(read_text(scratch_.path("out/rejects.jsonl"))).size(), 4u);
  const Ran again = sheaf("run");
  EXPECT_EQ(again.exit_code, 2) << "the same command ends alike";
  EXPECT_NE(again.err.find("all 4 records were rejected: 2 × "), std::string::npos) << again.err;
  EXPECT_EQ(sheaf("plan").exit_code, 2);
  EXPECT_EQ(sheaf("run", "--allow-empty").exit_code, 1);
  EXPECT_TRUE(succeeded());
}

TEST_F(UnusableCorpus, ACorpusThatWasMendedRunsWithoutRestart) {
  scratch_.write("corpus.jsonl", "{\"n\":1}\n");
  EXPECT_EQ(sheaf("run").exit_code, 2);
  scratch_.write("corpus.jsonl", good(1));
  const Ran ran = sheaf("run");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_TRUE(succeeded());
  EXPECT_EQ(read_text(scratch_.path("out/rejects.jsonl")), "");
}

TEST_F(UnusableCorpus, AnotherFormatNamedJsonlIsRecognized) {
  const std::string utf16("\xff\xfe{\0\"\0n\0\"\0:\0001\0}\0\n\0", 18);
  for (const std::string& text : {std::string("n,c,q\n1,A box.,What?\n"), "[" + good(1) + "]\n", utf16}) {
    scratch_.write("corpus.jsonl", text);
    for (const char* command : {"run", "plan"}) {
      EXPECT_EQ(sheaf(command).exit_code, 2) << command << ": " << text;
      EXPECT_FALSE(succeeded());
    }
  }
}

TEST_F(UnusableCorpus, RejectsAreExplained) {
  std::string lines;
  for (int i = 0; i < 9; ++i) lines += good(i);
  for (int i = 0; i < 3; ++i) lines += "{\"n\":" + std::to_string(i) + ",\"c\":\"A box.\"}\n";
  lines += "[1]\n" + json{{"n", 7}, {"c", ""}, {"q", "What?"}}.dump() + "\nnot JSON\n";
  scratch_.write("corpus.jsonl", lines);
  const Ran ran = sheaf("run"), plan = sheaf("plan");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_EQ(plan.exit_code, 1) << plan.err;
  for (const std::string& out : {ran.out, plan.out}) {
    EXPECT_NE(out.find("rejects 6 of 15 records (40 %); "), std::string::npos) << out;
    EXPECT_NE(out.find("3 × column \"q\" is missing (corpus.jsonl:10)"), std::string::npos) << out;
    EXPECT_NE(out.find("1 × the context is empty (corpus.jsonl:14)"), std::string::npos) << out;
    EXPECT_EQ(out.find("more\n"), std::string::npos) << out;
    EXPECT_NE(out.find(scratch_.path("out/rejects.jsonl")), std::string::npos) << out;
  }
  EXPECT_EQ(ran.err.find("WARNING"), std::string::npos) << ran.err;
}

TEST_F(UnusableCorpus, LinesThatAreNotJsonAreOneKindOfReject) {
  std::string lines;
  for (int i = 0; i < 9; ++i) lines += good(i);
  scratch_.write("corpus.jsonl", lines + "{\"n\": 1,}\n{\"n\" 1}\n{\"n\": True}\n{\"n\": \"x\n");
  const Ran ran = sheaf("run");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_NE(
      ran.out.find("4 × not valid JSON, the first at column 9: expected a key in double quotes, found } "
                   "(corpus.jsonl:10)\n"),
      std::string::npos)
      << ran.out;
  EXPECT_EQ(ran.out.find("more"), std::string::npos) << ran.out;
  std::string reasons;
  for (const json& reject : test::read_json_lines(read_text(scratch_.path("out/rejects.jsonl"))))
    reasons += reject["reason"].get<std::string>() + "\n";
  EXPECT_EQ(reasons,
            "not valid JSON at column 9: expected a key in double quotes, found }\n"
            "not valid JSON at column 6: expected a colon, found a number\n"
            "not valid JSON at column 7: True is not JSON; write true\n"
            "not valid JSON at column 9: a text has no closing quote\n");
}

TEST_F(UnusableCorpus, RejectingHalfOfTheRecordsIsWarnedOf) {
  scratch_.write("corpus.jsonl", good(1) + "{}\n");
  for (const char* command : {"run --quiet", "plan", "run --json --restart"}) {
    const Ran ran = sheaf(command);
    EXPECT_EQ(ran.exit_code, 1) << ran.err;
    EXPECT_NE(ran.err.find("sheaf: WARNING: 1 of 2 records (50 %) were rejected"), std::string::npos)
        << ran.err;
  }
}

TEST_F(UnusableCorpus, AShardWithoutRecordsSucceeds) {
  scratch_.write("corpus.jsonl", good(1));
  for (const char* shard : {"0/2", "1/2"}) {
    const Ran ran = sheaf("run", std::string("--shard ") + shard +
                                     " --set output.path=" + scratch_.path(std::string("s") + shard[0]));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
  }
  EXPECT_EQ(run_sheaf(scratch_,
                      "merge " + scratch_.path("all") + " " + scratch_.path("s0") + " " + scratch_.path("s1"))
                .exit_code,
            0);
}

TEST_F(UnusableCorpus, DuplicateIdsAreCountedAndWarnedOf) {
  scratch_.write("corpus.jsonl", good(7) + good(8) + good(7) + good(9) + good(8) + good(7));
  const Ran kept = sheaf("run", "--set output.path=" + scratch_.path("kept"));
  EXPECT_EQ(kept.exit_code, 0) << kept.err;
  EXPECT_NE(kept.err.find("3 records have a duplicate id: record 3 has 7 (first in record 1), record 5 has 8 "
                          "(first in record 2), record 6 has 7 (first in record 1); set "
                          "input.duplicate_ids: refuse"),
            std::string::npos)
      << kept.err;
  EXPECT_NE(sheaf("plan").err.find("3 records have a duplicate id"), std::string::npos);
  const Ran refused = sheaf("run", "--set input.duplicate_ids=refuse");
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  EXPECT_NE(refused.out.find("3 × duplicate id 7 (first in record 1)"), std::string::npos) << refused.out;
  const std::vector<json> rejects = test::read_json_lines(read_text(scratch_.path("out/rejects.jsonl")));
  ASSERT_EQ(rejects.size(), 3u);
  EXPECT_EQ(rejects[1]["row"], 5);
  EXPECT_EQ(rejects[1]["id"], 8);
  // Shards have the rejects of the whole.
  std::string folders;
  for (const char* shard : {"0/3", "1/3", "2/3"}) {
    const std::string folder = scratch_.path(std::string("s") + shard[0]);
    folders += " " + folder;
    sheaf("run", std::string("--set input.duplicate_ids=refuse --set engine.window=2 --shard ") + shard +
                     " --set output.path=" + folder + " --allow-empty");
  }
  EXPECT_EQ(run_sheaf(scratch_, "merge " + scratch_.path("all") + folders).exit_code, 1);
  EXPECT_EQ(read_text(scratch_.path("all/rejects.jsonl")), read_text(scratch_.path("out/rejects.jsonl")));
  std::string rows;
  for (const char* file : {"all/rows-00000.jsonl", "all/rows-00001.jsonl"})
    rows += read_text(scratch_.path(file));
  EXPECT_EQ(rows, read_text(scratch_.path("out/rows-00000.jsonl")));
  // Without an id column there is nothing to check.
  const Ran none = sheaf("run", "--set input.duplicate_ids=refuse --set input.id=null");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("input.id"), std::string::npos) << none.err;
}

TEST_F(UnusableCorpus, AStretchOfRejectsAcrossShardsMergesToThatOfOneRun) {
  std::string text = good(0);
  for (int i = 0; i < 400; ++i) text += "not JSON\n";
  scratch_.write("corpus.jsonl", text + good(1));
  EXPECT_EQ(sheaf("run").exit_code, 1);
  std::string folders;
  for (const char* shard : {"0/4", "1/4", "2/4", "3/4"}) {
    const std::string folder = scratch_.path(std::string("s") + shard[0]);
    folders += " " + folder;
    const Ran ran = sheaf("run", std::string("--shard ") + shard + " --set output.path=" + folder);
    EXPECT_LE(ran.exit_code, 1) << shard << ": " << ran.err;
  }
  EXPECT_EQ(run_sheaf(scratch_, "merge " + scratch_.path("all") + folders).exit_code, 1);
  EXPECT_EQ(read_text(scratch_.path("all/rejects.jsonl")), read_text(scratch_.path("out/rejects.jsonl")));
}

TEST_F(UnusableCorpus, DuplicateIdsOfRequestsAreReported) {
  const auto request = [](const std::string& id) {
    return json{{"custom_id", id},
                {"method", "POST"},
                {"url", "/v1/chat/completions"},
                {"body", {{"messages", {{{"role", "user"}, {"content", "Hello " + id}}}}, {"max_tokens", 3}}}}
               .dump() +
           "\n";
  };
  scratch_.write("requests.jsonl", request("a") + request("b") + request("a"));
  std::string job = read_text(scratch_.path("job.yaml"));
  job.replace(job.find("input:"), job.find("method:") - job.find("input:"),
              "input: {path: " + scratch_.path("requests.jsonl") +
                  ", format: openai-batch, duplicate_ids: refuse}\ntask: {kind: chat}\n");
  job.replace(job.find("ippd"), 4, "prefix");
  scratch_.write("job.yaml", job);
  const Ran ran = sheaf("run");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_NE(ran.out.find("1 × duplicate id \"a\" (first in record 1)"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace sheaf

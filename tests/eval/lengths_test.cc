// `sheaf eval` on rows of given lengths, which are timed and not answered.
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;

class EvalLengthsCommand : public testing::Test {
 protected:
  TempFolder scratch_;
  const std::string model_ = test::make_tiny_model(scratch_);
};

/// An evaluation of rows of given lengths; `more` is added to the dataset's lengths.
std::string lengths_command(const TempFolder& scratch, const std::string& model,
                            const std::string& more = "") {
  return "eval " +
         scratch.write(
             "lengths.yaml",
             "name: Lengths\noutput: {path: " + scratch.path("timed") +
                 "}\nbaseline: apart\nmodels: [{name: tiny, path: " + model +
                 "}]\ndatasets:\n"
                 "  - {name: b4, set: {engine.prompts: 2}, lengths: {documents: 4, document_tokens: 9, "
                 "questions: 3, question_tokens: 2, answer_tokens: 5, runs: 2" +
                 more +
                 "}}\n  - {name: b1, lengths: {document_tokens: 20, answer_tokens: 2, count: questions}}\n"
                 "methods: [{label: apart, name: standard, skip: b1}, {name: ippd, documents: 1}]\n"
                 "cost: {usd_per_hour: 3.6}\n"
                 "paper:\n  table: Paper, table 3\n  rows:\n"
                 "    - {model: tiny, dataset: b4, method: ippd, throughput: 1930.0, memory_gb: 23.70}\n") +
         " --device cpu";
}

TEST_F(EvalLengthsCommand, LengthsAreTimed) {
  const std::string command = lengths_command(scratch_, model_);
  const Ran ran = run_sheaf(scratch_, command + " --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json rows = json::parse(ran.out)["rows"];
  ASSERT_EQ(rows.size(), 3u) << "one is skipped";
  EXPECT_EQ(rows[0]["count"], 60) << "4 documents, 3 questions, 5 tokens";
  EXPECT_EQ(rows[0]["unit"], "tokens");
  EXPECT_EQ(rows[2]["method"], "ippd");
  EXPECT_EQ(rows[2]["count"], 1);
  EXPECT_EQ(rows[2]["unit"], "questions");
  for (const json& row : rows)
    EXPECT_DOUBLE_EQ(row["throughput"].get<double>(),
                     row["count"].get<double>() / row["seconds"].get<double>());
  const json timing = json::parse(read_text(scratch_.path("timed/tiny/b4/ippd/timing.json")));
  EXPECT_EQ(timing["measured"]["engine"]["prompts"], 2);
  EXPECT_EQ(timing["weights"], "loaded");

  // Once measured it is not measured again; the paper's digits are those that it prints.
  const Ran again = run_sheaf(scratch_, command);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(json::parse(read_text(scratch_.path("timed/tiny/b4/ippd/timing.json"))), timing);
  EXPECT_NE(again.out.find(" 1930.0 "), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("paper's GB"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("23.70"), std::string::npos) << again.out;
  EXPECT_EQ(again.out.find("differ"), std::string::npos) << "there are no answers";

  const Ran other = run_sheaf(scratch_, command + " --limit 2");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("contains a different measurement"), std::string::npos) << other.err;
  const Ran fewer = run_sheaf(scratch_, command + " --limit 2 --restart --json");
  ASSERT_EQ(fewer.exit_code, 0) << fewer.err;
  EXPECT_EQ(json::parse(fewer.out)["rows"][0]["count"], 30);
}

TEST_F(EvalLengthsCommand, OfLengthsDecodingAloneIsLessThanAll) {
  const std::string alone = lengths_command(scratch_, "smollm2-135m", ", decoding_only: true");
  const Ran ran = run_sheaf(scratch_, alone + " --dataset b4 --method ippd --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json timing = json::parse(read_text(scratch_.path("timed/tiny/b4/ippd/timing.json")));
  EXPECT_EQ(timing["weights"], "random");
  EXPECT_EQ(timing["measured"]["lengths"]["decoding_only"], true);
  if (timing.contains("not_measured")) {  // the machine had other work to do
    EXPECT_EQ(timing["not_measured"], "answers of one token took as long as those of 5");
    return;
  }
  const json row = json::parse(ran.out)["rows"][0];
  EXPECT_GT(row["seconds"].get<double>(), 0);
  EXPECT_LT(row["seconds"].get<double>(), timing["seconds_of_all"].get<double>());
}

TEST_F(EvalLengthsCommand, LengthsThatDoNotFitAreLeftOut) {
  const Ran ran = run_sheaf(
      scratch_, lengths_command(scratch_, model_) + " --method ippd --set engine.kv_memory_gb=0.000001");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find(
                "tiny, b4, ippd: not measured: a prompt does not fit the memory left for keys and values."),
            std::string::npos)
      << ran.out;
  EXPECT_EQ(ran.out.find("tokens/s"), std::string::npos) << ran.out;
  const Ran large = run_sheaf(scratch_, lengths_command(scratch_, "olmo-2-32b") + " --method ippd --restart");
  ASSERT_EQ(large.exit_code, 0) << large.err;
  EXPECT_NE(large.out.find("not measured: the weights do not fit"), std::string::npos) << large.out;
  const Ran far = run_sheaf(scratch_, lengths_command(scratch_, model_, ", instruction_tokens: 1000000") +
                                          " --method ippd --restart");
  ASSERT_EQ(far.exit_code, 0) << far.err;
  EXPECT_NE(far.out.find("not measured: a prompt needs 1000015 positions"), std::string::npos) << far.out;
  EXPECT_NE(far.out.find(" q/s"), std::string::npos) << "the other dataset: " << far.out;
}

TEST_F(EvalLengthsCommand, WhatIsToComeIsSaidFirst) {
  const Ran ran = run_sheaf(scratch_, lengths_command(scratch_, "smollm2-135m") + " --method ippd");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const size_t said = ran.err.find("sheaf: tiny, b4, ippd: "), begun = ran.err.find("[1/2] tiny, b4, ippd");
  ASSERT_NE(said, std::string::npos) << ran.err;
  EXPECT_LT(said, begun) << ran.err;
  EXPECT_NE(ran.err.find(" GB", said), std::string::npos) << ran.err;
  // A cell that is measured is not announced again; one that cannot be is, before the others are measured.
  const Ran again = run_sheaf(scratch_, lengths_command(scratch_, "smollm2-135m") + " --method ippd");
  EXPECT_EQ(again.err.find("sheaf: tiny, b4, ippd: "), std::string::npos) << again.err;
  const Ran large = run_sheaf(scratch_, lengths_command(scratch_, "olmo-2-32b") + " --method ippd --restart");
  EXPECT_NE(large.err.find("tiny, b4, ippd: cannot be measured here: random weights need"), std::string::npos)
      << large.err;
  // Where the device has a profile, a cell that takes too long is left out, and measured once it may.
  if (ran.err.find("ippd: about ") == std::string::npos) return;
  const std::string command = lengths_command(scratch_, "smollm2-135m") + " --method ippd";
  std::filesystem::remove_all(scratch_.path("timed"));
  const Ran brief = run_sheaf(scratch_, command + " --max-cell-hours 1e-9");
  ASSERT_EQ(brief.exit_code, 0) << brief.err;
  EXPECT_NE(brief.out.find("more than --max-cell-hours 1e-09"), std::string::npos) << brief.out;
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("timed/tiny/b4/ippd/timing.json")));
  const Ran longer = run_sheaf(scratch_, command);
  EXPECT_TRUE(std::filesystem::exists(scratch_.path("timed/tiny/b4/ippd/timing.json"))) << longer.err;
}

TEST_F(EvalLengthsCommand, ADraftIsTimedWithAGivenShareOfRightTokens) {
  const auto command = [&](const std::string& methods) {
    return "eval " +
           scratch_.write("draft.yaml", "name: Draft\noutput: {path: " + scratch_.path("drafted") +
                                            "}\nbaseline: ar\nmodels: [{name: tiny, path: " + model_ +
                                            "}]\ndatasets:\n  - {name: d, set: {engine.prompts: 1}, lengths: "
                                            "{documents: 2, document_tokens: 9, questions: 8, "
                                            "question_tokens: 3, answer_tokens: 5, object: true, count: "
                                            "documents, runs: 1}}\nmethods: [{label: ar, name: standard}, " +
                                            methods + "]\n") +
           " --device cpu --restart --json";
  };
  const auto timing = [&](const std::string& method) {
    return json::parse(read_text(scratch_.path("drafted/tiny/d/" + method + "/timing.json")));
  };
  const Ran ran =
      run_sheaf(scratch_, command("{label: hpd, name: ippd, documents: 1}, {label: drafted, name: "
                                  "standard, speculate: {draft: " +
                                  model_ + "}, accepted: 1}"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json rows = json::parse(ran.out)["rows"];
  ASSERT_EQ(rows.size(), 3u);
  for (const json& row : rows) EXPECT_EQ(row["count"], 2) << "documents";
  // `standard` writes questions and answers as one text of 64 tokens.
  EXPECT_EQ(timing("ar")["steps"], 2 * 64);
  EXPECT_EQ(timing("hpd")["steps"], 2 * 5);
  EXPECT_LE(timing("drafted")["steps"], 2 * 64);
  EXPECT_EQ(timing("drafted")["measured"]["speculate"]["accepted"], 1);

  const auto refused = [&](const std::string& methods, const std::string& part) {
    const Ran bad = run_sheaf(scratch_, command(methods));
    EXPECT_EQ(bad.exit_code, 2) << methods;
    EXPECT_NE(bad.err.find(part), std::string::npos) << bad.err;
  };
  refused("{name: ippd, speculate: lookup}", "lookup finds guesses in texts");
  refused("{name: ippd, speculate: {draft: " + model_ + "}}", "add accepted: 0.8");
  refused("{name: ippd, accepted: 0.5}", "the method has no draft");
  refused("{name: ippd, accepted: 2, speculate: {draft: " + model_ + "}}", "accepted");
  refused("{name: ippd, accepted: 0.5, speculate: {draft: qwen3-1.9b}}", "speculate.draft ");
  refused("{name: ippd, accepted: 0.5, speculate: {draft: qwen3-1.9b}}", "did you mean \"qwen3-1.7b\"?");
}

TEST_F(EvalLengthsCommand, SamplesShareAPromptOnTwoLevelsOrOne) {
  const std::string command =
      "eval " +
      scratch_.write("samples.yaml",
                     "name: Samples\noutput: {path: " + scratch_.path("samples") +
                         "}\nmodels: [{name: tiny, path: " + model_ +
                         "}]\ndatasets:\n  - {name: apps, lengths: {instruction_tokens: 40, documents: 3, "
                         "document_tokens: 30, samples: 8, answer_tokens: 5, runs: 1}}\nmethods:\n"
                         "  - {label: one, name: ippd, documents: 1, share_documents: false}\n"
                         "  - {label: two, name: ippd, documents: 1}\n"
                         "  - {label: none, name: ippd, documents: 1, attention: false}\n") +
      " --device cpu --set engine.tokens_per_step=16";
  const Ran ran = run_sheaf(scratch_, command + " --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  for (const json& row : json::parse(ran.out)["rows"]) EXPECT_EQ(row["count"], 3 * 8 * 5);
  const auto timing = [&](const std::string& method) {
    return json::parse(read_text(scratch_.path("samples/tiny/apps/" + method + "/timing.json")));
  };
  EXPECT_EQ(timing("one")["measured"]["lengths"]["samples"], 8);
  EXPECT_FALSE(timing("two")["measured"]["lengths"].contains("share_documents"));
  EXPECT_FALSE(timing("none").contains("predicted_seconds"));
  // 24 documents instead of three, in steps of 16 tokens.
  EXPECT_GT(timing("one")["steps"].get<int>(), timing("two")["steps"].get<int>() + 30);
  EXPECT_EQ(timing("none")["steps"], timing("two")["steps"]) << "only attention is left out";
}

TEST_F(EvalLengthsCommand, WrongLengthsAreRefused) {
  const auto refused = [&](const std::string& command, const std::string& part) {
    const Ran ran = run_sheaf(scratch_, command);
    EXPECT_EQ(ran.exit_code, 2) << command;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  };
  const std::string command = lengths_command(scratch_, model_);
  refused(command + " --set method.temperature=1",
          "method.temperature has no effect on a dataset with lengths");
  refused(command + " --model tiny=qwen3-8c", "did you mean \"qwen3-8b\"?");
  refused(command + " --differences apart ippd --dataset b4", "which have no answers");
  refused(lengths_command(scratch_, model_, ", token: 3"), "unknown key \"token\"");
  refused(lengths_command(scratch_, model_, "}, metric: squad, judge: {model: none"),
          "metric does not work with lengths");
  refused(lengths_command(scratch_, model_, ", samples: 0"), "samples must be");
  refused(lengths_command(scratch_, model_) + " --set method.name=map-reduce", "the method map-reduce");
  refused(lengths_command(scratch_, model_, ", anchor_tokens: 2"), "anchor_tokens is about the entries");
  refused(lengths_command(scratch_, model_, ", object_tokens: 9"), "add object: true");
  refused(lengths_command(scratch_, model_, ", entries: 2, decoding_only: true"), "a second round");
  refused(lengths_command(scratch_, model_, ", entries: 2, samples: 2"),
          "samples does not work with entries");
  refused(lengths_command(scratch_, model_, ", entries: 2") + " --set method.name=pced",
          "the method pced cannot ask about the entries");
}

TEST_F(EvalLengthsCommand, EntriesOfListsAreAskedAboutInASecondRound) {
  const std::string file = scratch_.write(
      "entries.yaml", "name: Entries\noutput: {path: " + scratch_.path("entries") +
                          "}\nmodels: [{name: tiny, path: " + model_ +
                          "}]\ndatasets:\n  - {name: lists, lengths: {documents: 2, document_tokens: 9, "
                          "questions: 2, question_tokens: 3, answer_tokens: 2, entries: 4, anchor_tokens: 5, "
                          "entry_questions: 3, object: true, object_tokens: 40, count: questions, runs: 1}}\n"
                          "methods: [{label: rounds, name: ippd, documents: 1}, {label: whole, name: "
                          "standard}]\n");
  const Ran ran = run_sheaf(scratch_, "eval " + file + " --device cpu --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  for (const json& row : json::parse(ran.out)["rows"])
    EXPECT_EQ(row["count"], 2 * (2 + 1 + 4 * 3))
        << "plain ones, the list, and three for each of four entries";
  const auto steps = [&](const std::string& method) {
    return json::parse(read_text(scratch_.path("entries/tiny/lists/" + method + "/timing.json")))["steps"]
        .get<int>();
  };
  EXPECT_GE(steps("rounds"), 20 + 2) << "a list of 20 tokens, then answers of 2";
  EXPECT_LT(steps("rounds"), 30);
  EXPECT_EQ(steps("whole"), 40);
}

TEST_F(EvalLengthsCommand, SeveralDocumentsAreReadOneByOneOrTogether) {
  const std::string file = scratch_.write(
      "pced.yaml", "name: Chains\noutput: {path: " + scratch_.path("chains") +
                       "}\nmodels: [{name: tiny, path: " + model_ +
                       "}]\ndatasets:\n  - {name: d6, lengths: {documents: 2, documents_per_record: 6, "
                       "document_tokens: 9, questions: 2, question_tokens: 3, answer_tokens: 2, runs: 1}}\n"
                       "methods: [{name: standard}, {name: pced}, {name: ape}]\n");
  const Ran ran = run_sheaf(scratch_, "eval " + file + " --device cpu --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json rows = json::parse(ran.out)["rows"];
  ASSERT_EQ(rows.size(), 3u);
  for (const json& row : rows) {
    EXPECT_EQ(row["count"], 8) << "2 records, 2 questions, 2 tokens";
    EXPECT_GT(row["throughput"].get<double>(), 0);
  }
  const json timing = json::parse(read_text(scratch_.path("chains/tiny/d6/pced/timing.json")));
  EXPECT_EQ(timing["measured"]["lengths"]["documents_per_record"], 6);
}

}  // namespace
}  // namespace sheaf

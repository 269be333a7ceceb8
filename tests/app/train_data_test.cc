// Training data through the program: what is learned, where right answers come from, what is refused.
#include <algorithm>
#include <gtest/gtest.h>

#include "io/base/table_file.h"
#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::run_sheaf;

class TrainData : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    scratch_.write("schema.yaml",
                   "categories: {Tea: [{name: Brand}, {name: Weight, type: number}, {name: Form, type: enum, "
                   "options: [bags, loose]}, {name: Notes, type: list}]}\n");
    scratch_.write(
        "products.jsonl",
        R"({"id": 1, "category": "Tea", "document": "Oak tea 20 g", "gold": {"Brand": "Oak", "Weight": 20, "Form": null, "Notes": ["a", "b"]}}
{"id": 2, "category": "Tea", "document": "Elm bags", "gold": {"Brand": "Elm", "Form": "bags", "Weight": "much"}}
{"id": 3, "category": "Tea", "document": "nobody knows", "gold": {}}
)");
  }

  std::string job(const std::string& method = "name: hpd, documents: 2") const {
    return scratch_.write(
        "job.yaml",
        "model: {path: " + model_ + ", chat: chatml}\ninput: {path: " + scratch_.path("products.jsonl") +
            ", id: id, category: category, document: [document]}\ntask: {kind: "
            "extract, schema: " +
            scratch_.path("schema.yaml") + "}\nmethod: {" + method +
            "}\nengine: {device: cpu, threads: 1}\noutput: {path: " + scratch_.path("out") + "}\n");
  }

  Ran write(const std::string& more = "", const std::string& method = "name: hpd, documents: 2") const {
    return run_sheaf(scratch_,
                     "train-data " + job(method) + " " + scratch_.path("data.parquet") + " " + more);
  }

  std::vector<json> prompts() const {
    TableFile file(scratch_.path("data.parquet"));
    file.select({"tokens", "positions", "targets", "segment_starts", "sees", "abreast", "records"});
    std::vector<json> all;
    while (const auto batch = file.next()) {
      EXPECT_EQ(batch->error, "");
      all.insert(all.end(), batch->cells.begin(), batch->cells.end());
    }
    return all;
  }

  /// The answers of a prompt, spelled out: the model has one token a byte.
  static std::vector<std::string> learned(const json& prompt) {
    std::vector<std::string> answers;
    bool open = false;
    for (const json& target : prompt["targets"]) {
      const bool taken = target.get<int>() >= 0;
      if (taken && !open) answers.emplace_back();
      if (taken) answers.back() += static_cast<char>(target.get<int>());
      open = taken;
    }
    return answers;
  }

  TempFolder scratch_;
  std::string model_;
};

/// The tokens of a prompt's segments, each spelled out behind those that it sees.
std::vector<std::string> chains_of(const json& prompt) {
  const json &starts = prompt["segment_starts"], &tokens = prompt["tokens"];
  std::vector<std::string> own(starts.size()), chains(starts.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto end = i + 1 < starts.size() ? starts[i + 1].get<size_t>() : tokens.size();
    for (auto t = starts[i].get<size_t>(); t < end; ++t) own[i] += static_cast<char>(tokens[t].get<int>());
    for (const json& seen : prompt["sees"][i]) chains[i] += own[seen.get<size_t>()];
    chains[i] += own[i];
  }
  return chains;
}

TEST_F(TrainData, ListsOfObjectsAreLearnedInBothRounds) {
  scratch_.write("schema.yaml", R"(categories:
  Tea:
    - {name: Brand}
    - name: sizes
      type: list
      anchor: size
      attributes: [{name: size}, {name: price, type: number}, {name: box, type: object, attributes: [{name: kind}]}]
)");
  scratch_.write(
      "products.jsonl",
      R"({"id": 1, "category": "Tea", "document": "Oak, S 12, M in tins", "gold": {"Brand": "Oak", "sizes": [{"size": "S", "price": 12, "box": null}, {"size": "M", "price": null, "box": {"kind": "tin"}}, {"size": null, "price": 3}]}}
{"id": 2, "category": "Tea", "document": "none", "gold": {"sizes": []}}
{"id": 3, "category": "Tea", "document": "unknown", "gold": {"Brand": "Elm"}}
)");
  const std::string method = "name: hpd, documents: 3, keys: name";
  const Ran ran = write("", method);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::vector<json> data = prompts();
  ASSERT_EQ(data.size(), 2u) << ran.out;
  EXPECT_EQ(learned(data[0]),
            (std::vector<std::string>{" \"Oak\"", " [\"S\", \"M\"]", " null,", " \"Elm\""}));
  EXPECT_EQ(learned(data[1]), (std::vector<std::string>{" 12,\n", " null,", " null,", " \"tin\""}));
  EXPECT_EQ(data[1]["records"], json{"1"});
  // Decoding M's box after M sees the same tokens.
  const auto ends_with = [&](const json& prompt, const std::string& text) {
    return std::ranges::count_if(chains_of(prompt),
                                 [&](const std::string& chain) { return chain.ends_with(text); });
  };
  EXPECT_EQ(ends_with(data[1], "  \"sizes.size\": \"M\",\n  \"sizes.box.kind\": \"tin"), 1)
      << "the last token is never seen";
  const Ran plan = run_sheaf(scratch_, "plan " + job(method) + " --prompt 1");
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
}

TEST_F(TrainData, GoldOfARepeatedIdIsOfTheFirstRecordThatHasIt) {
  const std::string corpus = read_text(scratch_.path("products.jsonl"));
  scratch_.write("gold.jsonl", corpus);
  scratch_.write("products.jsonl",
                 corpus + R"({"id": 1, "category": "Tea", "document": "another tea", "gold": {}})" + "\n");
  const Ran ran = write("--gold " + scratch_.path("gold.jsonl"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("2 records in "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("1 record left out: an earlier record has the id, such as \"1\""), std::string::npos)
      << ran.out;
}

TEST_F(TrainData, AnswersEndAsDecodingEndsThem) {
  const Ran ran = write();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("2 records in 1 prompt, 6 answers to learn"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("1 value left out: the gold value does not fit the attribute's type"),
            std::string::npos)
      << ran.out;
  const auto all = prompts();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["records"], json({"1", "2"}));
  EXPECT_EQ(learned(all[0]), (std::vector<std::string>{" \"Oak\"", " 20,\n", " null", " [\"a\", \"b\"]",
                                                       " \"Elm\"", " \"bags\""}));
  // instruction, document, four keys, document, two keys.
  EXPECT_EQ(all[0]["segment_starts"].size(), 9u);
  EXPECT_EQ(all[0]["sees"][8], json({0, 6}));
  EXPECT_EQ(all[0]["tokens"].size(), all[0]["positions"].size());
}

TEST_F(TrainData, LeavesOutSpansThatTheTextDoesNotHold) {
  scratch_.write(
      "schema.yaml",
      "categories: {Tea: [{name: Brand, type: span}, {name: Weight, type: number}, {name: Notes}]}\n");
  scratch_.write("gold.jsonl",
                 R"({"id": 1, "category": "Tea", "gold": {"Brand": "Ash", "Weight": 20, "Notes": ""}}
{"id": 2, "category": "Tea", "gold": {"Brand": "elm", "Nots": "x"}}
)");
  for (const char* method : {"name: hpd, documents: 2", "name: standard"}) {
    const Ran ran = write("--unmentioned-absent --gold " + scratch_.path("gold.jsonl"), method);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_NE(ran.out.find("1 value left out: the gold value does not fit"), std::string::npos) << ran.out;
    EXPECT_NE(ran.err.find("1 gold value left out, because the category in the schema has no such attribute: "
                           "\"Nots\" of Tea (did you mean \"Notes\"?)"),
              std::string::npos)
        << ran.err;
  }
  ASSERT_EQ(write("--gold " + scratch_.path("gold.jsonl")).exit_code, 0);
  EXPECT_EQ(learned(prompts().at(0)), (std::vector<std::string>{" 20,\n", " null,", " \"Elm\""}));
}

TEST_F(TrainData, UnmentionedAttributesMayCountAsAbsent) {
  ASSERT_EQ(write("--unmentioned-absent").exit_code, 0);
  std::vector<std::string> answers;
  for (const json& prompt : prompts())
    for (std::string& answer : learned(prompt)) answers.push_back(std::move(answer));
  EXPECT_EQ(std::ranges::count(answers, " null"), 2) << "of an option the end is the option's";
  EXPECT_EQ(std::ranges::count(answers, " null,"), 4);
}

TEST_F(TrainData, ValuesMarkedWrongAreLeftOut) {
  scratch_.write("gold.jsonl",
                 R"({"id": 1, "category": "Tea", "gold": {"Brand": "Oak"}, "wrong": {"Weight": [null]}})"
                 "\n");
  ASSERT_EQ(write("--unmentioned-absent --gold " + scratch_.path("gold.jsonl")).exit_code, 0);
  const auto all = prompts();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(learned(all[0]).size(), 3u) << "Brand, Form and Notes";
}

TEST_F(TrainData, AWholeObjectIsOneAnswer) {
  ASSERT_EQ(write("--limit 1", "name: standard").exit_code, 0);
  const auto all = prompts();
  ASSERT_EQ(all.size(), 1u);
  const std::string object = learned(all[0]).at(0);
  EXPECT_NE(object.find(
                "\"Brand\": \"Oak\",\n  \"Weight\": 20,\n  \"Form\": null,\n  \"Notes\": [\"a\", \"b\"]\n}"),
            std::string::npos)
      << object;
}

TEST_F(TrainData, PositionalValuesHaveTheirOwnSegments) {
  ASSERT_EQ(write("--limit 1", "name: hpd, values: positional").exit_code, 0);
  const json prompt = prompts().at(0);
  ASSERT_EQ(prompt["segment_starts"].size(), 10u);  // instruction, document, four keys and values
  EXPECT_EQ(prompt["abreast"][9], json({3, 5, 7}));
}

TEST_F(TrainData, RowsOfARunMayServeAsAnswers) {
  const std::string rows = scratch_.write(
      "rows.jsonl",
      R"({"id": 2, "category": "Tea", "values": {"Brand": "Ash", "Weight": 7, "Form": "loose", "Notes": null}}
)");
  const Ran ran = write("--rows " + rows);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(learned(prompts().at(0)),
            (std::vector<std::string>{" \"Ash\"", " 7,\n", " \"loose\"", " null,"}));
  EXPECT_NE(ran.out.find("2 records left out: no right answer is known"), std::string::npos) << ran.out;
}

TEST_F(TrainData, WhatItCannotDoIsRefusedByName) {
  const auto expect_refusal = [&](const Ran& ran, const std::string& part) {
    EXPECT_EQ(ran.exit_code, 2) << ran.out;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(scratch_.path("data.parquet")));
    EXPECT_FALSE(std::filesystem::exists(scratch_.path("data.parquet.part")));
  };
  expect_refusal(write("--gold a --rows b"), "give one of them");
  expect_refusal(write("", "name: seqbatch"), "training data can be made for");
  expect_refusal(run_sheaf(scratch_, "train-data " + job() + " " + scratch_.path("data.jsonl")),
                 "must end in .parquet");
  scratch_.write("other.jsonl", R"({"id": 9, "category": "Tea", "document": "x", "gold": {"Brand": "Oak"}}
)");
  expect_refusal(write("--gold " + scratch_.path("other.jsonl")),
                 "other.jsonl: no answer to learn was found: its ids (such as \"9\") do not match those of " +
                     scratch_.path("products.jsonl") + " (such as \"1\")");
  scratch_.write("typo.jsonl", R"({"id": 1, "category": "Tea", "gold": {"Brnd": "Oak"}}
)");
  expect_refusal(write("--gold " + scratch_.path("typo.jsonl")),
                 "it knows 1 of 3 records, but no value for them");
  scratch_.write("much.jsonl", R"({"id": 1, "category": "Tea", "gold": {"Weight": "much"}}
)");
  expect_refusal(write("--gold " + scratch_.path("much.jsonl")),
                 "it knows 1 of 3 records, but gives them no value that the attribute's type holds");
  scratch_.write("bare.jsonl", R"({"id": 1, "category": "Tea", "document": "x"}
)");
  expect_refusal(
      write("--set input.path=" + scratch_.path("bare.jsonl")),
      "bare.jsonl:1: no gold answers can be read: no \"gold\" or \"answers\"; a row needs {\"id\", "
      "\"gold\": {attribute: value}} for attributes, or {\"id\", \"answers\": [...]} for questions; or name "
      "the "
      "right answers with --gold");
  expect_refusal(write("--gold-format oa-mine"), "give --gold too");
  scratch_.write("twice.jsonl", R"({"id": 1, "category": "Tea", "gold": {"Brand": "Oak"}}
{"id": 1, "category": "Tea", "gold": {"Brand": "Elm"}}
)");
  expect_refusal(write("--gold " + scratch_.path("twice.jsonl")),
                 "twice.jsonl:2: there are two right answers with the id \"1\"");
  scratch_.write("answers.jsonl", "{\"id\": 1, \"answers\": [\"Oak\"]}\n");
  expect_refusal(write("--gold " + scratch_.path("answers.jsonl")), "the job needs attribute values");
  expect_refusal(write("--set input.id="), "set input.id");
}

TEST_F(TrainData, NeverOverwritesItsCorpus) {
  ASSERT_EQ(write().exit_code, 0);
  const std::string parquet = scratch_.path("data.parquet");
  const Ran over = run_sheaf(
      scratch_, "train-data configs/demo.yaml " + parquet + " --set model.path=" + model_ +
                    " --set model.adapter=null --set input.path='" + scratch_.path("d*.parquet") + "'");
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_EQ(over.out, "");
}

TEST_F(TrainData, ARecordInSeveralPromptsIsCountedOnce) {
  const Ran ran = write("--json", "name: separate");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json end = json::parse(ran.out);
  EXPECT_EQ(end["records"], 2);
  EXPECT_EQ(end["prompts"], 6);
}

TEST_F(TrainData, AnswersThatTheTeacherCouldNotGiveAreLeftOut) {
  const std::string rows = scratch_.write(
      "rows.jsonl",
      R"({"id": 2, "category": "Tea", "values": {"Brand": "Ash", "Weight": null, "Form": null}, "notes": {"Weight": "not a number"}}
)");
  ASSERT_EQ(write("--rows " + rows).exit_code, 0);
  EXPECT_EQ(learned(prompts().at(0)), (std::vector<std::string>{" \"Ash\"", " null"}));
}

}  // namespace
}  // namespace sheaf

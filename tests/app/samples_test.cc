// Several answers to one question (method.samples, n of a request), through the program.
#include <gtest/gtest.h>

#include "io/base/table_file.h"
#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::read_json_lines, test::run_sheaf;

class SampledRun : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    std::string lines, products, requests;
    for (int i = 0; i < 10; ++i) {
      const std::string n = std::to_string(i);
      json questions = json::array();
      for (int q = 0; q <= i % 3; ++q)
        questions.push_back({{"id", n + "/" + std::to_string(q)}, {"question", "What " + std::to_string(q)}});
      questions.push_back({{"id", n + "/o"}, {"question", "Which?"}, {"options", {"Oak", "Elm", "Ash"}}});
      lines +=
          json{{"id", n}, {"c", "Bridge " + n}, {"docs", {"Bridge " + n, "Oss"}}, {"qs", questions}}.dump() +
          "\n";
      products += json{{"id", n}, {"text", "Oak tea " + n}}.dump() + "\n";
      json body{{"messages", {{{"role", "user"}, {"content", "Say " + n}}}}, {"temperature", 1.5}};
      if (i % 3 > 0) body["n"] = i % 3 + 1;
      if (i == 9) body = {{"messages", body["messages"]}, {"n", 2}, {"temperature", 0}};
      requests += json{{"custom_id", n}, {"body", body}}.dump() + "\n";
    }
    scratch_.write("rows.jsonl", lines);
    scratch_.write("products.jsonl", products);
    scratch_.write("requests.jsonl", requests);
    scratch_.write("schema.yaml",
                   "categories: {Tea: [{name: Brand}, {name: Kind, type: enum, options: [a, b]}]}\n");
  }

  std::string job(const std::string& input, const std::string& task, const std::string& method) const {
    return scratch_.write("job.yaml", "model: {path: " + model_ + ", chat: chatml}\ninput: {" + input +
                                          "}\ntask: {" + task + "}\nmethod: {max_value_tokens: 3, " + method +
                                          "}\nengine: {device: cpu, threads: 1, window: 4}\noutput: {path: " +
                                          scratch_.path("out") + ", logprobs: true}\n");
  }
  std::string ask(const std::string& method, const std::string& input = "context: c") const {
    return job("path: " + scratch_.path("rows.jsonl") + ", id: id, questions: qs, " + input, "kind: ask",
               method);
  }
  std::string extract(const std::string& method) const {
    return job("path: " + scratch_.path("products.jsonl") + ", id: id, document: text",
               "kind: extract, schema: " + scratch_.path("schema.yaml"), method);
  }
  std::string chat(const std::string& more = "") const {
    return job("path: " + scratch_.path("requests.jsonl"), "kind: chat", "seed: 3" + more);
  }
  std::string rows_of(const std::string& path, const std::string& name, const std::string& more = "",
                      int code = 0) const {
    const Ran ran =
        run_sheaf(scratch_, "run -q " + path + " --set output.path=" + scratch_.path(name) + " " + more);
    EXPECT_EQ(ran.exit_code, code) << ran.err;
    return read_text(scratch_.path(name) + "/rows-00000.jsonl");
  }
  std::string error(const std::string& path, const std::string& more = "") const {
    const Ran ran = run_sheaf(scratch_, "plan " + path + " " + more);
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    return ran.err;
  }
  void expect_verified(const std::string& path, const std::string& more = "", int code = 0) const {
    const Ran ran = run_sheaf(scratch_, "verify " + path + " " + more);
    EXPECT_EQ(ran.exit_code, code) << ran.err;
    EXPECT_NE(ran.out.find("exact match 1.0000"), std::string::npos) << ran.out;
  }

  TempFolder scratch_;
  std::string model_;
};

constexpr const char* kAll = "--set output.samples=all";

TEST_F(SampledRun, SamplesDoNotDependOnBatchOrOrder) {
  const std::string all = rows_of(ask("name: ippd, temperature: 1.5, samples: 5"), "all", kAll);
  const auto rows = read_json_lines(all);
  ASSERT_EQ(rows.size(), 10u);
  int different = 0;
  for (const json& row : rows) {
    ASSERT_EQ(row["samples"].size(), 5u);
    EXPECT_EQ(row["samples"][0]["answers"], row["answers"]) << "the first sample is the answer";
    for (const json& sample : row["samples"]) different += sample != row["samples"][0];
  }
  EXPECT_GT(different, 30);
  int number = 0;
  for (const char* set : {"--set engine.tokens_per_step=3", "--set engine.window=1 --set method.documents=1",
                          "--set method.name=prefix", "--set method.name=standard", "--set engine.prompts=1"})
    EXPECT_EQ(
        rows_of(scratch_.path("job.yaml"), "as" + std::to_string(number++), std::string(kAll) + " " + set),
        all)
        << set;
  // In another order, and with fewer neighbours.
  std::vector<std::string> lines;
  for (const json& line : read_json_lines(read_text(scratch_.path("rows.jsonl"))))
    lines.insert(lines.begin(), line.dump());
  scratch_.write("back.jsonl", lines[3] + "\n" + lines[0] + "\n");
  const auto back =
      read_json_lines(rows_of(scratch_.path("job.yaml"), "back",
                              std::string(kAll) + " --set input.path=" + scratch_.path("back.jsonl")));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0], rows[6]);
  EXPECT_EQ(back[1], rows[9]);
}

TEST_F(SampledRun, MoreSamplesBeginWithTheFewer) {
  const auto rows = [&](int samples) {
    return read_json_lines(rows_of(ask("name: ippd, temperature: 1.5, samples: " + std::to_string(samples)),
                                   "n" + std::to_string(samples), samples > 1 ? kAll : ""));
  };
  const auto one = rows(1), two = rows(2), four = rows(4);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i]["answers"], two[i]["answers"]);
    for (size_t s = 0; s < 2; ++s) EXPECT_EQ(two[i]["samples"][s], four[i]["samples"][s]);
  }
}

TEST_F(SampledRun, AVoteIsTheMostFrequentSampleWithItsShare) {
  const std::string path = ask("name: ippd, temperature: 1.5, top_k: 3, samples: 9");
  const auto all = read_json_lines(rows_of(path, "all", kAll)),
             votes = read_json_lines(rows_of(path, "vote"));
  int split = 0;
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t q = 0; q < votes[i]["answers"].size(); ++q) {
      std::vector<json> said;
      for (const json& sample : all[i]["samples"]) said.push_back(sample["answers"][q]["answer"]);
      const json& vote = votes[i]["answers"][q];
      const auto most = std::ranges::count(said, vote["answer"]);
      EXPECT_DOUBLE_EQ(vote["confidence"].get<double>(), static_cast<double>(most) / 9.0);
      for (size_t s = 0; s < said.size(); ++s) {
        const auto times = std::ranges::count(said, said[s]);
        EXPECT_LE(times, most);
        if (times < most) continue;
        EXPECT_GE(std::ranges::find(said, said[s]), std::ranges::find(said, vote["answer"])) << "the first";
      }
      split += most < 9;
    }
  EXPECT_GT(split, 5);
}

TEST_F(SampledRun, EveryMethodIsVerified) {
  const std::string samples = ", temperature: 1, samples: 3";
  for (const char* method : {"name: ippd", "name: prefix"}) expect_verified(ask(method + samples), kAll);
  for (const char* method : {"name: pced", "name: ape"})
    expect_verified(ask(method + samples, "documents: docs"));
  for (const char* method : {"name: hpd", "name: standard", "name: separate"}) {
    expect_verified(extract(method + samples));
    const auto rows = read_json_lines(rows_of(scratch_.path("job.yaml"), "x", "--restart"));
    for (const json& row : rows)
      for (const auto& [name, value] : row["values"].items())
        EXPECT_GT(row["confidence"][name].get<double>(), 0.3) << row;
  }
}

TEST_F(SampledRun, RowsAreTheSameAfterAResumeAndWithReuse) {
  const std::string path = ask("name: ippd, temperature: 1.5, samples: 4");
  const std::string all = rows_of(path, "all", kAll);
  // Three of four samples are known; a vote takes them, too.
  const std::string three = rows_of(path, "three", std::string(kAll) + " --set method.samples=3");
  const std::string reused =
      rows_of(path, "reused", std::string(kAll) + " --reuse " + scratch_.path("three"));
  EXPECT_EQ(reused, all);
  const json report = json::parse(read_text(scratch_.path("reused/report.json")));
  EXPECT_EQ(report["reused"], report["answers"].get<int>() * 3) << "three of four samples";
}

TEST_F(SampledRun, AVoteCanBeCalibrated) {
  std::string products;
  for (int i = 0; i < 40; ++i)
    products += json{{"id", std::to_string(i)}, {"text", "Oak tea " + std::to_string(i)}}.dump() + "\n";
  scratch_.write("products.jsonl", products);
  const auto lines =
      read_json_lines(rows_of(extract("name: hpd, temperature: 1.5, top_k: 4, samples: 5"), "v"));
  std::string gold;
  for (size_t i = 0; i < lines.size(); ++i) {
    json values = lines[i]["values"];
    if (i % 2 == 0) values["Brand"] = "Something";
    gold += json{{"id", lines[i]["id"]}, {"category", "Tea"}, {"gold", values}}.dump() + "\n";
  }
  const Ran ran =
      run_sheaf(scratch_, "calibrate " + scratch_.path("v") + " --gold " +
                              scratch_.write("gold.jsonl", gold) + " -o " + scratch_.path("scale.json"));
  ASSERT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  const Ran scaled = run_sheaf(scratch_, "run -q " + scratch_.path("job.yaml") +
                                             " --set output.path=" + scratch_.path("scaled") +
                                             " --set output.calibration=" + scratch_.path("scale.json"));
  ASSERT_EQ(scaled.exit_code, 0) << scaled.err;
  const auto rows = read_json_lines(read_text(scratch_.path("scaled/rows-00000.jsonl")));
  EXPECT_EQ(rows[0]["values"], lines[0]["values"]);
  EXPECT_NE(rows[0]["confidence"], lines[0]["confidence"]);
}

TEST_F(SampledRun, ATableHasAColumnOfSamples) {
  rows_of(extract("name: hpd, temperature: 1.5, samples: 5"), "lines", kAll);
  ASSERT_EQ(
      run_sheaf(scratch_, "run -q " + scratch_.path("job.yaml") + " --set output.format=parquet " + kAll)
          .exit_code,
      0);
  TableFile file(scratch_.path("out/rows-00000.parquet"));
  file.select({"id", "samples"});
  const auto batch = file.next();
  ASSERT_TRUE(batch && batch->cells.size() == 10);
  const auto lines = read_json_lines(read_text(scratch_.path("lines/rows-00000.jsonl")));
  for (size_t i = 0; i < 10; ++i)
    for (size_t s = 0; s < 5; ++s)
      EXPECT_EQ(json::parse(batch->cells[i]["samples"][s].get<std::string>()), lines[i]["samples"][s]);
}

TEST_F(SampledRun, ARequestGetsAsManyAnswersAsItAsksFor) {
  const auto rows = read_json_lines(rows_of(chat(), "chat", "", 1));
  ASSERT_EQ(rows.size(), 9u);
  for (int i = 0; i < 9; ++i) {
    const json& row = rows[static_cast<size_t>(i)];
    if (i % 3 == 0) {
      EXPECT_FALSE(row.contains("samples"));
    } else {
      EXPECT_EQ(row["samples"].size(), static_cast<size_t>(i % 3 + 1));
      EXPECT_EQ(row["samples"][0]["answer"], row["answer"]);
      EXPECT_TRUE(row["samples"][1].contains("finish"));
    }
  }
  const auto rejects = read_json_lines(read_text(scratch_.path("chat/rejects.jsonl")));
  ASSERT_EQ(rejects.size(), 1u);
  EXPECT_EQ(rejects[0]["reason"],
            "2 answers are asked for, but at temperature 0 all of them are the same; set a temperature");
  const auto lines = read_json_lines(
      rows_of(chat(), "batch", "--set output.format=openai-batch --set output.logprobs=null", 1));
  for (int i = 0; i < 9; ++i) {
    const json& choices = lines[static_cast<size_t>(i)]["response"]["body"]["choices"];
    ASSERT_EQ(choices.size(), static_cast<size_t>(i % 3 + 1));
    for (size_t c = 0; c < choices.size(); ++c) {
      EXPECT_EQ(choices[c]["index"], c);
      const json& row = rows[static_cast<size_t>(i)];
      EXPECT_EQ(choices[c]["message"]["content"],
                choices.size() == 1 ? row["answer"] : row["samples"][c]["answer"]);
    }
  }
  const auto three = read_json_lines(rows_of(chat(", samples: 3"), "three", "", 1));
  EXPECT_EQ(three[0]["samples"].size(), 3u) << "what the job says";
  EXPECT_EQ(three[1]["samples"].size(), 2u) << "what the request says";
  expect_verified(chat(), "", 1);
}

TEST_F(SampledRun, SamplesOfAPromptShareIt) {
  const auto plan = [&](const std::string& method) {
    const Ran ran = run_sheaf(scratch_, "plan --json " + ask(method + ", temperature: 1, samples: 8"));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return json::parse(ran.out);
  };
  const json shared = plan("name: ippd"), apart = plan("name: standard");
  EXPECT_EQ(shared["answers"], apart["answers"]);
  EXPECT_EQ(shared["tokens_one_prompt_per_question"], apart["tokens_computed"]);
  EXPECT_LT(shared["tokens_computed"].get<int>() * 4, apart["tokens_computed"].get<int>());
}

TEST_F(SampledRun, WhatMakesNoSenseIsRefused) {
  const auto expect = [&](const std::string& path, const std::string& message, const std::string& more = "") {
    const std::string found = error(path, more);
    EXPECT_NE(found.find(message), std::string::npos) << found;
  };
  expect(ask("name: ippd, samples: 2"), ":4: method.samples needs a method.temperature above 0");
  expect(ask("name: map-reduce, temperature: 1, samples: 2", "documents: docs"),
         "method.samples does not work with method.name map-reduce");
  expect(extract("name: hpd, values: positional, temperature: 1, samples: 2"),
         "method.samples works only with method.values independent");
  expect(ask("name: ippd, temperature: 1, samples: 2", "context: c, too_long: split"),
         "method.samples does not work with input.too_long split");
  expect(ask("name: ippd, temperature: 1, samples: 2000"), "method.samples must be at most 1024, not 2000");
  expect(ask("name: ippd"), "output.samples works only with method.samples above 1", kAll);
  const Ran ran =
      run_sheaf(scratch_, "train-data " + ask("name: ippd, temperature: 1, samples: 2") + " " +
                              scratch_.path("t.parquet") + " --gold " + scratch_.path("rows.jsonl"));
  EXPECT_NE(ran.exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("t.parquet")));
}

}  // namespace
}  // namespace sheaf

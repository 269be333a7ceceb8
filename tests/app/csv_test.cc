// A table people have, through every command that reads a corpus.
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;

class CsvThroughTheProgram : public testing::Test {
 protected:
  void SetUp() override {
    std::string csv = "sku;kind;title;notes;Brand\n", lines;
    for (int i = 0; i < 12; ++i) {
      const std::string title = fmt::format("Oak \"{}\"; tea", i), brand = i % 3 ? "Oak" : "";
      csv += fmt::format("{};Tea;\"Oak \"\"{}\"\"; tea\";\"two\nlines\";{}\n", i, i, brand);
      lines += json{{"sku", std::to_string(i)},
                    {"kind", "Tea"},
                    {"title", title},
                    {"notes", "two\nlines"},
                    {"Brand", brand.empty() ? json() : json(brand)}}
                   .dump() +
               "\n";
    }
    scratch_.write("corpus.csv", csv);
    scratch_.write("corpus.jsonl", lines);
    scratch_.write("schema.yaml", "categories: {Tea: [{name: Brand}, {name: Size}]}\n");
    job_ = scratch_.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch_) +
                                          "}\ninput: {path: corpus.csv, id: sku, category: kind, document: "
                                          "[title, notes], keep: [Brand]}\n"
                                          "task: {kind: extract, schema: schema.yaml}\n"
                                          "method: {name: hpd, max_value_tokens: 2}\n"
                                          "engine: {device: cpu, window: 2}\noutput: {path: out}\n");
  }

  std::string rows(const std::string& folder) const {
    return read_text(scratch_.path(folder + "/rows-00000.jsonl"));
  }

  Ran sheaf(const std::string& command, int code = 0) const {
    Ran ran = run_sheaf(scratch_, command);
    EXPECT_EQ(ran.exit_code, code) << command << "\n" << ran.err;
    return ran;
  }

  const TempFolder scratch_;
  std::string job_;
};

TEST_F(CsvThroughTheProgram, GivesTheRowsOfTheSameJsonLines) {
  scratch_.write("schema.yaml", "categories: {Tea: [{name: Name}, {name: Size}]}\n");
  sheaf("run " + job_ + " --quiet");
  sheaf("run " + job_ + " --quiet --set input.path=" + scratch_.path("corpus.jsonl") +
        " --set output.path=" + scratch_.path("lines"));
  EXPECT_EQ(rows("out"), rows("lines"));
  EXPECT_EQ(test::read_json_lines(rows("out")).at(0).at("Brand"), json());
  for (const char* part : {"0", "1"})
    sheaf("run " + job_ + " --quiet --shard " + part + "/2 --set output.path=" + scratch_.path("part") +
          part);
  sheaf("merge " + scratch_.path("all") + " " + scratch_.path("part0") + " " + scratch_.path("part1"));
  EXPECT_EQ(rows("all") + read_text(scratch_.path("all/rows-00001.jsonl")), rows("out"));
  const std::string piped =
      std::string(SHEAF_BINARY) + " run " + job_ +
      " --quiet --set input.format=csv --set input.path=- --set output.path=" + scratch_.path("piped") +
      " < " + scratch_.path("corpus.csv");
  EXPECT_EQ(std::system(piped.c_str()), 0);
  EXPECT_EQ(rows("piped"), rows("out"));
  sheaf("run " + job_ + " --quiet --limit 3 --set output.path=" + scratch_.path("few"));
  EXPECT_EQ(test::read_json_lines(rows("few")).size(), 3u);
}

TEST_F(CsvThroughTheProgram, ADamagedStretchIsCountedInFullAndListedInShort) {
  std::string more;
  for (int i = 0; i < 3000; ++i) more += "x\n";
  more += "98;Tea;\"long";
  for (int i = 0; i < 6'000'000; ++i) more += "er\n";
  more += "\";n;b\n99;Tea;last;n;b\n";
  std::ofstream(scratch_.path("corpus.csv"), std::ios::app | std::ios::binary) << more;
  sheaf("run " + job_ + " --quiet", 1);
  EXPECT_EQ(test::read_json_lines(rows("out")).size(), 13u);
  EXPECT_EQ(test::read_json_lines(rows("out")).back()["id"], "99");
  const std::string text = read_text(scratch_.path("out/rejects.jsonl"));
  const std::vector<json> rejects = test::read_json_lines(text);
  ASSERT_EQ(rejects.size(), 100u + 4 + 1)
      << "a hundred, up to 1000, 2000 and 3000, the rest, and the long row";
  EXPECT_EQ(rejects[100]["row"], 126);
  EXPECT_EQ(rejects[100]["records"], 1000 - 112);
  EXPECT_NE(rejects.back()["reason"].get<std::string>().find("more than 16 MB"), std::string::npos);
  const json report = json::parse(read_text(scratch_.path("out/report.json")));
  EXPECT_EQ(report["rejects"], 3001);
  EXPECT_EQ(report["reject_reasons"][0]["records"], 3000);
  EXPECT_EQ(json::parse(read_text(scratch_.path("out/manifest.json")))["rejects"], 3001);
  EXPECT_NE(sheaf("plan " + job_, 1).out.find("3001 rejects"), std::string::npos);
  sheaf("show " + scratch_.path("out") + " --sample 3");
  std::string parts;
  for (const char* part : {"0", "1", "2"}) {
    const std::string folder = scratch_.path("part") + part;
    const Ran ran = run_sheaf(
        scratch_, fmt::format("run {} --quiet --shard {}/3 --set output.path={}", job_, part, folder));
    EXPECT_LE(ran.exit_code, 1) << ran.err;
    parts += " " + folder;
  }
  sheaf("merge " + scratch_.path("all") + parts, 1);
  EXPECT_EQ(read_text(scratch_.path("all/rejects.jsonl")), text);
  EXPECT_EQ(json::parse(read_text(scratch_.path("all/manifest.json")))["rejects"], 3001);
  EXPECT_NE(run_sheaf(scratch_,
                      "run " + job_ + " --quiet --max-rejects 500 --set output.path=" + scratch_.path("few"))
                .err.find("--max-rejects"),
            std::string::npos);
}

TEST_F(CsvThroughTheProgram, BadRowsAreRejectsWithTheirLines) {
  std::ofstream(scratch_.path("corpus.csv"), std::ios::app)
      << "12;Tea;\"open;x;y\n13;Tea;a;b;c\n1;Tea;a;b;c\n";
  scratch_.write("schema.yaml", "categories: {Tea: [{name: Name}]}\n");
  sheaf("run " + job_ + " --quiet --set input.duplicate_ids=refuse", 1);
  const auto rejects = test::read_json_lines(read_text(scratch_.path("out/rejects.jsonl")));
  ASSERT_EQ(rejects.size(), 2u);
  EXPECT_EQ(rejects[0]["file"], "corpus.csv");
  EXPECT_EQ(rejects[0]["row"], 26);
  EXPECT_EQ(rejects[0]["reason"], "a quote is not closed");
  EXPECT_EQ(rejects[1]["row"], 28);
  EXPECT_EQ(test::read_json_lines(rows("out")).back()["id"], "13");
}

TEST_F(CsvThroughTheProgram, PlanEstimateAndScoreReadIt) {
  const std::string set = " --set input.keep=null";
  EXPECT_NE(sheaf("plan " + job_ + set).out.find("12 records"), std::string::npos);
  sheaf("estimate " + job_ + set + " --hardware h200");
  sheaf("run " + job_ + " --quiet" + set);
  const Ran by_job =
      sheaf("score --metric attributes --json --job " + job_ + " --pred " + scratch_.path("out"));
  scratch_.write("gold.csv", "id,category,gold\n1,Tea,\"{\"\"Brand\"\": \"\"Oak\"\"}\"\n");
  const Ran by_file = sheaf("score --metric attributes --json --gold " + scratch_.path("gold.csv") +
                            " --pred " + scratch_.path("out"));
  EXPECT_NE(by_job.out.find("\"micro_f1\""), std::string::npos) << by_job.out;
  EXPECT_NE(by_file.out.find("\"micro_f1\""), std::string::npos) << by_file.out;
  sheaf("run " + job_ + " --quiet" + set + " --set task.examples=" +
        scratch_.write("examples.csv",
                       "category,document,gold\nTea,Oak tea,\"{\"\"Brand\"\": \"\"Oak\"\"}\"\n") +
        " --set model.chat=chatml --set output.path=" + scratch_.path("shown"));
}

/// What `sheaf inspect` proposes for a corpus it has never seen is pasted, and planned.
TEST_F(CsvThroughTheProgram, InspectProposesJobsThatPlan) {
  const std::string model = scratch_.path("model"), source = SHEAF_SOURCE_DIR "/datasets/";
  for (const std::string& corpus :
       {scratch_.path("corpus.csv"), scratch_.path("corpus.jsonl"), source + "catalog/catalog.jsonl",
        source + "catalog/catalog.parquet", source + "shops/products.jsonl"}) {
    const auto about = json::parse(sheaf("inspect --json --model " + model + " " + corpus).out);
    const json& proposed = about.at("corpus").at("proposed");
    scratch_.write("schema.yaml", proposed.at("schema").get<std::string>());
    const std::string job = scratch_.write("proposed.yaml", proposed.at("job").get<std::string>());
    const Ran ran = sheaf("plan " + job + " --set engine.device=cpu");
    EXPECT_NE(ran.out.find(", 0 rejects"), std::string::npos) << ran.out;
    EXPECT_EQ(ran.err, "") << corpus;
  }
}

}  // namespace
}  // namespace sheaf

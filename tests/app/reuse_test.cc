// Night after night: answers of an earlier run are taken where nothing that decides them has changed, and the
// rows are those of a run that decodes everything.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>

#include "tests/app/running.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;
using test::Running;

class ReusedAnswers : public testing::Test {
 protected:
  void SetUp() override { model_ = test::make_tiny_model(scratch_); }

  struct Product {
    int id;
    std::string category, title;
    int price;
  };
  using Attributes = std::map<std::string, std::vector<std::string>>;  // by category

  void write_corpus(const std::vector<Product>& products) {
    std::string lines;
    for (const Product& each : products)
      lines += json{{"id", each.id}, {"kind", each.category}, {"title", each.title}, {"price", each.price}}
                   .dump() +
               "\n";
    scratch_.write("corpus.jsonl", lines);
  }
  void write_schema(const Attributes& attributes) {
    std::string text = "categories:\n";
    for (const auto& [category, names] : attributes) {
      text += "  " + category + ":\n";
      for (const std::string& name : names) text += "    - {name: " + name + ", type: text}\n";
    }
    scratch_.write("schema.yaml", text);
  }
  std::string job(const std::string& method = "name: hpd, documents: 3") {
    return scratch_.write("job.yaml",
                          "model: {path: " + model_ +
                              ", chat: plain}\ninput: {path: " + scratch_.path("corpus.jsonl") +
                              ", id: id, category: kind, document: [title]}\ntask: {kind: extract, schema: " +
                              scratch_.path("schema.yaml") + "}\nmethod: {" + method +
                              ", max_value_tokens: 5}\nengine: {device: cpu, window: 8}\n"
                              "output: {path: " +
                              scratch_.path("out") + "}\n");
  }
  /// Teas with a title of their own each, and two attributes.
  void write_numbered(int count) {
    std::vector<Product> products;
    for (int i = 0; i < count; ++i) products.push_back({i, "tea", fmt::format("Tea number {}", i), 0});
    write_corpus(products);
    write_schema({{"tea", {"Brand", "Weight"}}});
  }
  json run(const std::string& folder, const std::string& options = "") {
    const Ran ran = run_sheaf(scratch_, "run " + scratch_.path("job.yaml") +
                                            " --set output.path=" + scratch_.path(folder) + " " + options);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    note_ = ran.err;
    return json::parse(read_text(scratch_.path(folder) + "/report.json"));
  }
  std::string rows(const std::string& folder) {
    return read_text(scratch_.path(folder) + "/rows-00000.jsonl");
  }

  TempFolder scratch_;
  std::string model_, note_;
};

TEST_F(ReusedAnswers, RepeatedEditsGiveTheRowsOfAFullRun) {
  int kinds = 0;
  for (const std::string method : {"name: hpd, documents: 3", "name: hpd, values: positional, documents: 2",
                                   "name: prefix", "name: hpd, temperature: 1, seed: 4"}) {
    std::mt19937 random(11);
    std::vector<Product> products;
    Attributes attributes{{"tea", {"Brand", "Weight", "Flavor"}}, {"shoe", {"Brand", "Size"}}};
    int next = 0;
    const auto fresh = [&] {
      const int number = static_cast<int>(random() % 40);  // some titles are equal
      const int id = next++;
      return Product{id, random() % 2 ? "tea" : "shoe", "Item " + std::to_string(number), id};
    };
    for (int i = 0; i < 30; ++i) products.push_back(fresh());
    const int kind = kinds++;
    std::string before;
    for (int night = 0; night < 6; ++night) {
      write_corpus(products);
      write_schema(attributes);
      job(method);
      const std::string full = fmt::format("full-{}-{}", kind, night),
                        part = fmt::format("part-{}-{}", kind, night);
      run(full);
      const json report = run(part, before.empty() ? "" : "--reuse " + scratch_.path(before));
      EXPECT_EQ(rows(part), rows(full)) << method << ", night " << night;
      if (night > 0 && night != 4) {
        EXPECT_GT(report["reused"].get<int>(), report["answers"].get<int>()) << method << ", night " << night;
      }
      before = part;
      switch (night) {  // what happens by day
        case 0:
          products.insert(products.begin() + 7, fresh());
          products.erase(products.begin() + 20);
          break;
        case 1:
          products[3].title += " new";
          products[9].price += 100;  // no part of the prompt
          products[12].category = products[12].category == "tea" ? "shoe" : "tea";
          break;
        case 2:
          std::shuffle(products.begin(), products.end(), random);
          break;
        case 3:
          attributes["shoe"].push_back("Color");
          break;
        default:
          products.push_back(fresh());
      }
    }
  }
}

TEST_F(ReusedAnswers, AnAddedAttributeIsDecodedAlone) {
  std::vector<Product> products;
  for (int i = 0; i < 20; ++i) products.push_back({i, i % 2 ? "tea" : "shoe", fmt::format("Item {}", i), 0});
  write_corpus(products);
  write_schema({{"tea", {"Brand", "Weight"}}, {"shoe", {"Brand", "Size"}}});
  job();
  const std::string alone = " --set task.list_attributes=false ";
  EXPECT_EQ(run("first", alone)["answers"], 40);
  write_schema({{"tea", {"Brand", "Weight"}}, {"shoe", {"Color", "Brand", "Size"}}});
  const json wider = run("wider", alone + "--reuse " + scratch_.path("first"));
  EXPECT_EQ(wider["answers"], 10);
  EXPECT_EQ(wider["reused"], 40);
  run("full", alone);
  EXPECT_EQ(rows("wider"), rows("full"));
  write_schema(
      {{"tea", {"Brand", "Weight, description: as printed on the bag"}}, {"shoe", {"Brand", "Size"}}});
  EXPECT_EQ(run("described", alone + "--reuse " + scratch_.path("wider"))["answers"], 10);
  EXPECT_EQ(note_.find("no answer of"), std::string::npos) << note_;
  EXPECT_EQ(run("listed", "--reuse " + scratch_.path("wider"))["reused"], 0);
  EXPECT_NE(note_.find("no answer of " + scratch_.path("wider") + " could be taken"), std::string::npos)
      << note_;
  const Ran verified = run_sheaf(scratch_, "verify " + scratch_.path("job.yaml") + alone);
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_NE(verified.out.find("1.0000"), std::string::npos) << verified.out;
}

TEST_F(ReusedAnswers, AttributesAloneAreRefusedWhereOthersCount) {
  write_corpus({{0, "tea", "Green tea", 1}});
  write_schema({{"tea", {"Brand"}}});
  const std::string command = "plan " + job() + " --set task.list_attributes=false --set ";
  for (const auto& [setting, word] : {std::pair{"method.name=standard", "method.name standard"},
                                      {"method.values=positional", "method.values independent"},
                                      {"method.stacking=joint", "method.stacking isolated"},
                                      {"method.keys=marker", "method.keys name"}}) {
    const Ran ran = run_sheaf(scratch_, command + setting);
    EXPECT_EQ(ran.exit_code, 2) << setting;
    EXPECT_NE(ran.err.find(word), std::string::npos) << ran.err;
  }
}

TEST_F(ReusedAnswers, EqualDocumentsAreDecodedOnce) {
  std::vector<Product> products;
  for (int i = 0; i < 60; ++i) products.push_back({i, "tea", i % 3 ? "Green tea" : "Black tea", 0});
  write_corpus(products);
  write_schema({{"tea", {"Brand", "Weight"}}});
  job();
  const json report = run("out");
  EXPECT_EQ(report["answers"], 4);
  EXPECT_EQ(report["reused"], 116);
}

TEST_F(ReusedAnswers, OtherSettingsAreNamedAndReuseNothing) {
  write_corpus({{0, "tea", "Green tea", 1}, {1, "tea", "Black tea", 1}});
  write_schema({{"tea", {"Brand", "Weight"}}});
  job();
  run("first");
  EXPECT_EQ(run("packed", "--set method.documents=1 --reuse " + scratch_.path("first"))["answers"], 0);
  EXPECT_EQ(note_.find("every answer"), std::string::npos) << note_;
  EXPECT_EQ(run("longer", "--set method.max_value_tokens=6 --reuse " + scratch_.path("first"))["reused"], 0);
  EXPECT_NE(note_.find("method.max_value_tokens was 5 and is now 6; every answer is decoded"),
            std::string::npos)
      << note_;
  std::filesystem::copy(model_, scratch_.path("model2"));
  scratch_.write("model2/extra.json", "{}");
  EXPECT_EQ(run("other", "--set model.path=" + scratch_.path("model2") +
                             " --set model.cpu_dtype=int8 --reuse " + scratch_.path("first"))["reused"],
            0);
  EXPECT_NE(
      note_.find(
          "its answers cannot be used: the model changed: extra.json is new; model.cpu_dtype was \"auto\" "
          "and is now \"int8\"; every answer is decoded"),
      std::string::npos)
      << note_;
  scratch_.write("first/answers.table", "nonsense");
  EXPECT_EQ(run("damaged", "--reuse " + scratch_.path("first"))["reused"], 0);
  EXPECT_NE(note_.find("answers.table is damaged; every answer is decoded"), std::string::npos) << note_;
}

TEST_F(ReusedAnswers, WhatCannotBeReusedIsRefused) {
  write_corpus({{0, "tea", "Green tea", 1}});
  write_schema({{"tea", {"Brand"}}});
  const std::string command = "run " + job() + " --quiet --reuse ";
  const Ran absent = run_sheaf(scratch_, command + scratch_.path("nowhere"));
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_NE(absent.err.find("does not exist"), std::string::npos) << absent.err;
  const Ran own = run_sheaf(scratch_, command + scratch_.path("out"));
  EXPECT_EQ(own.exit_code, 2);
  EXPECT_NE(own.err.find("is this run's own output.path"), std::string::npos) << own.err;
  const Ran joint = run_sheaf(scratch_, command + scratch_.path("model") + " --set method.stacking=joint");
  EXPECT_EQ(joint.exit_code, 2);
  EXPECT_NE(joint.err.find("method.stacking: isolated"), std::string::npos) << joint.err;
}

TEST_F(ReusedAnswers, SeveralRunsAndMergedOnesAreLookedThrough) {
  write_numbered(24);
  job();
  run("full");
  for (const char* part : {"0/3", "1/3", "2/3"})
    run(fmt::format("shard-{}", part[0]), fmt::format("--shard {}", part));
  const std::string shards = scratch_.path("shard-0") + " " + scratch_.path("shard-1") + " ",
                    last = scratch_.path("shard-2");
  EXPECT_EQ(
      run("two", "--reuse " + scratch_.path("shard-0") + " --reuse " + scratch_.path("shard-2"))["reused"],
      32);
  EXPECT_EQ(run("all", "--reuse '" + scratch_.path("shard-[0-9]") + "'")["answers"], 0);
  ASSERT_EQ(run_sheaf(scratch_, "merge " + scratch_.path("merged") + " " + shards + last).exit_code, 0);
  EXPECT_EQ(run("from-merged", "--reuse " + scratch_.path("merged"))["answers"], 0);
  EXPECT_EQ(rows("from-merged"), rows("full"));
  // A shard without answers leaves the merge without any, and the merge says so.
  std::filesystem::remove(last + "/answers.json");
  const Ran poor = run_sheaf(scratch_, "merge " + scratch_.path("poor") + " " + shards + last);
  EXPECT_EQ(poor.exit_code, 0) << poor.err;
  EXPECT_NE(poor.err.find("the merged folder has no answers for --reuse: " + last), std::string::npos)
      << poor.err;
}

TEST_F(ReusedAnswers, LatestIsTheNewestFinishedRunAndNeverTheRunItself) {
  write_numbered(6);
  job();
  const std::string latest = "--reuse 'latest:" + scratch_.path("nights/{date}") + "' ";
  const Ran first = run_sheaf(scratch_, "run " + scratch_.path("job.yaml") + " " + latest);
  EXPECT_EQ(first.exit_code, 2);
  EXPECT_NE(first.err.find("no finished run matches latest:"), std::string::npos) << first.err;
  std::filesystem::create_directory(scratch_.path("nights"));
  EXPECT_EQ(run("nights/2026-01-01", latest + "--reuse-if-exists --require-reuse 90%")["answers"], 12);
  EXPECT_NE(note_.find("no earlier run exists"), std::string::npos) << note_;
  write_numbered(8);
  EXPECT_EQ(run("nights/2026-01-02", latest)["answers"], 4);
  std::filesystem::create_directory(scratch_.path("nights/2026-01-03"));  // is not finished
  std::filesystem::create_directory(scratch_.path("nights/2026-01-0x"));  // is no date
  scratch_.write("nights/2026-01-0x/_SUCCESS", "");
  write_numbered(9);
  EXPECT_EQ(run("nights/2026-01-04", latest)["answers"], 2);
  EXPECT_NE(note_.find("{date} is " + scratch_.path("nights/2026-01-02")), std::string::npos) << note_;
  EXPECT_EQ(run("nights/2026-01-04", latest + "--restart")["answers"], 2);
  EXPECT_NE(note_.find("{date} is " + scratch_.path("nights/2026-01-02")), std::string::npos) << note_;
  // Without a date in its name, the newest is the one that was finished last.
  run("nights/b");
  run("nights/a");
  run("out", "--reuse 'latest:" + scratch_.path("nights/[ab]") + "'");
  EXPECT_NE(note_.find(" is " + scratch_.path("nights/a")), std::string::npos) << note_;
  const Ran typo =
      run_sheaf(scratch_, "run " + scratch_.path("job.yaml") + " --restart --reuse 'latest:x/{day}'");
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_NE(typo.err.find("{day} stands for nothing"), std::string::npos) << typo.err;
}

TEST_F(ReusedAnswers, RunsOfAStoreAreReused) {
  write_numbered(6);
  job();
  const std::string store = "file://" + scratch_.path("store/");
  const std::string home = ". && export XDG_CACHE_HOME=" + scratch_.path("cache");
  const auto publish = [&](const std::string& name, const std::string& more) {
    const Ran ran = run_sheaf(
        scratch_,
        "run " + scratch_.path("job.yaml") + " --json --set output.path=" + store + name + " " + more, home);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return json::parse(ran.out);
  };
  const std::string latest = "--reuse 'latest:" + store + "{date}' ";
  EXPECT_EQ(publish("2026-01-01", latest + "--reuse-if-exists")["answers"], 12);
  EXPECT_EQ(publish("2026-01-02", latest)["reused"], 12);
  EXPECT_EQ(publish("direct", "--reuse " + store + "2026-01-02")["reused"], 12);
  for (const auto& entry : std::filesystem::directory_iterator(scratch_.path("cache/sheaf")))
    EXPECT_EQ(entry.path().filename(), "runs") << "what was fetched is gone";
}

TEST_F(ReusedAnswers, TooLittleToReuseEndsBeforeAnythingIsDecoded) {
  write_numbered(6);
  job();
  run("first");
  write_numbered(8);
  const std::string command =
      "run " + scratch_.path("job.yaml") + " --quiet --reuse " + scratch_.path("first");
  const Ran little = run_sheaf(scratch_, command + " --require-reuse 0.9");
  EXPECT_EQ(little.exit_code, 2);
  EXPECT_NE(little.err.find("--require-reuse 0.9: only 12 of 16 answers are known from " +
                            scratch_.path("first") + " (75.0 %); nothing was decoded"),
            std::string::npos)
      << little.err;
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("out")));
  const Ran other = run_sheaf(scratch_, command + " --require-reuse 1% --set method.max_value_tokens=6");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("method.max_value_tokens was 5 and is now 6"), std::string::npos) << other.err;
  for (const char* wrong : {"90", "1.5", "-1%", "most", "nan"}) {
    const Ran ran = run_sheaf(scratch_, command + " --require-reuse=" + wrong);
    EXPECT_EQ(ran.exit_code, 2) << wrong;
    EXPECT_NE(ran.err.find("must be a share such as 0.9 or 90%"), std::string::npos) << ran.err;
  }
  EXPECT_EQ(run_sheaf(scratch_, command + " --require-reuse 75%").exit_code, 0);
}

TEST_F(ReusedAnswers, AWarningThatCostsMoneyIsNotQuiet) {
  write_numbered(3);
  job();
  run("first");
  const Ran ran =
      run_sheaf(scratch_, "run " + scratch_.path("job.yaml") +
                              " --quiet --set method.max_value_tokens=6 --reuse " + scratch_.path("first"));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.err.find("WARNING: output.reuse: " + scratch_.path("first")), std::string::npos) << ran.err;
}

TEST_F(ReusedAnswers, PlanAndEstimateCountOnlyWhatChanged) {
  write_numbered(40);
  job();
  run("first");
  write_numbered(44);
  const std::string reuse = scratch_.path("job.yaml") + " --json --reuse " + scratch_.path("first");
  const Ran planned = run_sheaf(scratch_, "plan " + reuse);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const json plan = json::parse(planned.out);
  EXPECT_EQ(plan["records"], 44);
  EXPECT_EQ(plan["answers"], 8);
  EXPECT_EQ(plan["reused"], 80);
  const json second = run("second", "--reuse " + scratch_.path("first"));
  EXPECT_EQ(second["answers"], plan["answers"]);
  EXPECT_EQ(second["reused"], plan["reused"]);
  const std::string on = " --hardware h200 --set engine.device=auto --set model.dtype=auto";
  const Ran estimated = run_sheaf(scratch_, "estimate " + reuse + on, SHEAF_SOURCE_DIR);
  ASSERT_EQ(estimated.exit_code, 0) << estimated.err;
  EXPECT_EQ(json::parse(estimated.out)["answers"], 8) << estimated.out;
  EXPECT_EQ(json::parse(estimated.out)["reused"], 80) << estimated.out;
  write_numbered(40);
  const Ran nothing = run_sheaf(scratch_, "estimate " + reuse + on, SHEAF_SOURCE_DIR);
  EXPECT_EQ(nothing.exit_code, 0) << nothing.err;
  EXPECT_EQ(json::parse(nothing.out)["answers"], 0) << nothing.out;
}

TEST_F(ReusedAnswers, AKilledRunKeepsItsAnswersAndResumes) {
  std::vector<Product> products;
  for (int i = 0; i < 1500; ++i) products.push_back({i, "tea", "Tea number " + std::to_string(i % 1000), 0});
  write_corpus(products);
  write_schema({{"tea", {"Brand", "Weight"}}});
  job();
  run("full");
  Running session("run " + scratch_.path("job.yaml") + " --quiet", test::stop_at_group(20));
  ASSERT_TRUE(session.stopped());
  session.send(SIGKILL);
  ASSERT_EQ(session.end(), 128 + SIGKILL);
  ASSERT_EQ(run_sheaf(scratch_, "run " + scratch_.path("job.yaml") + " --quiet").exit_code, 0);
  EXPECT_EQ(rows("out"), rows("full"));
  EXPECT_EQ(run("again", "--reuse " + scratch_.path("out"))["answers"], 0) << "nothing was lost";
  EXPECT_EQ(rows("again"), rows("full"));
}

TEST_F(ReusedAnswers, ASessionEndsAtItsLimitAndTheNextResumes) {
  std::vector<Product> products;
  for (int i = 0; i < 600; ++i) products.push_back({i, "tea", "Tea number " + std::to_string(i), 0});
  write_corpus(products);
  write_schema({{"tea", {"Brand", "Weight"}}});
  const std::string command = "run " + job() + " --quiet ";
  const Ran no_price = run_sheaf(scratch_, command + "--max-usd 1");
  EXPECT_EQ(no_price.exit_code, 2);
  EXPECT_NE(no_price.err.find("cost.usd_per_hour"), std::string::npos) << no_price.err;
  const Ran hours = run_sheaf(scratch_, command + "--max-hours 1e-9");
  EXPECT_EQ(hours.exit_code, 130);
  EXPECT_NE(hours.err.find("(--max-hours); "), std::string::npos) << hours.err;
  EXPECT_NE(hours.err.find("rerun the same command to resume"), std::string::npos) << hours.err;
  const Ran usd = run_sheaf(scratch_, command + "--max-usd 0.0001 --set cost.usd_per_hour=100000");
  EXPECT_EQ(usd.exit_code, 130);
  EXPECT_NE(usd.err.find("(--max-usd); "), std::string::npos) << usd.err;
  EXPECT_EQ(run_sheaf(scratch_, command + "--max-hours 1").exit_code, 0);
  EXPECT_EQ(test::read_json_lines(rows("out")).size(), 600u);
}

}  // namespace
}  // namespace sheaf

// Values of an earlier run of another model that a job takes instead of decoding them: task.trust,
// output.sources, and the threshold that `sheaf calibrate --precision` promises.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::read_json_lines, test::run_sheaf;

constexpr int kRecords = 30;

class TrustingRun : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    std::string lines;
    for (int i = 0; i < kRecords; ++i)
      lines += json{{"n", i}, {"t", fmt::format("Tea number {} in a box of {} bags", i * 7, i)}, {"k", "Tea"}}
                   .dump() +
               "\n";
    scratch_.write("rows.jsonl", lines);
    scratch_.write("schema.yaml",
                   "attributes: {Color: {type: enum, options: [red, green, blue]}, Loose: {type: boolean},"
                   " Form: {type: enum, options: [loose, bags]}, Organic: {type: boolean}}\n"
                   "categories: {Tea: [Color, Loose, Form, Organic]}\n");
    const Ran ran = run("small", "", "method.null_bias=-9", "--set task.instruction=Tell");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    for (const json& row : rows("small"))
      for (const auto& [name, value] : row.at("confidence").items())
        confidences_.push_back(value.get<double>());
    std::ranges::sort(confidences_);
    middle_ = confidences_[confidences_.size() * 3 / 8];
  }

  std::string job(const std::string& trust, const std::string& more = "") const {
    return scratch_.write("job.yaml",
                          "model: {path: " + model_ +
                              ", chat: chatml}\ninput: {path: " + scratch_.path("rows.jsonl") +
                              ", id: n, document: t, category: k}\ntask: {kind: extract, schema: " +
                              scratch_.path("schema.yaml") + trust +
                              "}\nmethod: {name: hpd, max_value_tokens: 6}\n"
                              "engine: {device: cpu, threads: 1, window: 8}\noutput: {path: " +
                              scratch_.path("out") + ", confidence: true}\n" + more);
  }
  Ran run(const std::string& name, const std::string& trust, const std::string& set = "",
          const std::string& options = "") const {
    return run_sheaf(scratch_, "run " + job(trust) + " --quiet --set output.path=" + scratch_.path(name) +
                                   (set.empty() ? "" : " --set " + set) + " " + options);
  }
  std::string trust(double at_least) const {
    return fmt::format(", trust: {{run: {}, at_least: {}}}", scratch_.path("small"), at_least);
  }
  std::vector<json> rows(const std::string& name) const {
    return read_json_lines(read_text(scratch_.path(name) + "/rows-00000.jsonl"));
  }
  json report(const std::string& name) const {
    return json::parse(read_text(scratch_.path(name) + "/report.json"));
  }

  TempFolder scratch_;
  std::string model_;
  std::vector<double> confidences_;  ///< of the small run, ascending
  double middle_ = 0;
};

TEST_F(TrustingRun, TakesWhatIsSureAndDecodesTheRest) {
  ASSERT_EQ(run("alone", "").exit_code, 0);
  const Ran ran = run("both", trust(middle_), "output.sources=true");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::vector<json> small = rows("small"), alone = rows("alone"), both = rows("both");
  ASSERT_EQ(both.size(), small.size());
  int64_t taken = 0, differ = 0;
  for (size_t i = 0; i < both.size(); ++i)
    for (const auto& [name, value] : both[i].at("values").items()) {
      const bool sure = small[i].at("confidence").at(name) >= middle_ &&
                        !small[i].value("notes", json::object()).contains(name);
      const json& from = sure ? small[i] : alone[i];
      EXPECT_EQ(value, from.at("values").at(name)) << i << name;
      EXPECT_EQ(both[i].at("confidence").at(name), from.at("confidence").at(name)) << i << name;
      EXPECT_EQ(both[i].at("sources").at(name), sure ? "small" : "model") << i << name;
      taken += sure;
      differ += small[i].at("values").at(name) != alone[i].at("values").at(name);
    }
  EXPECT_GT(taken, 10);
  EXPECT_LT(taken, 4 * kRecords - 10);
  EXPECT_GT(differ, 0) << "the two runs answer alike, so that the test shows nothing";
  EXPECT_EQ(report("both").at("trusted"), taken);
  EXPECT_EQ(report("both").at("answers"), 4 * kRecords - taken);
  EXPECT_LT(report("both").at("tokens").at("computed"), report("alone").at("tokens").at("computed"));
  const Ran plan = run_sheaf(scratch_, "plan " + job(trust(middle_)) + " --json");
  const json planned = json::parse(plan.out);
  EXPECT_EQ(planned.at("trusted"), taken) << plan.err;
  const Ran estimate =
      run_sheaf(scratch_, "estimate " + job(trust(middle_)) + " --hardware h200 --json --answer-tokens 6");
  const Ran counted = run_sheaf(scratch_, "plan " + job(trust(middle_)) + " --json --answer-tokens 6");
  EXPECT_EQ(json::parse(estimate.out).at("tokens_computed"), json::parse(counted.out).at("tokens_computed"))
      << estimate.err;
}

TEST_F(TrustingRun, IsReusedAndResumedLikeOthers) {
  ASSERT_EQ(run("both", trust(middle_)).exit_code, 0);
  ASSERT_EQ(run("again", trust(middle_), "", "--reuse " + scratch_.path("both")).exit_code, 0);
  EXPECT_EQ(rows("again"), rows("both"));
  EXPECT_EQ(report("again").at("answers"), 0);
  EXPECT_EQ(report("again").at("trusted"), report("both").at("trusted"));
  // A run that trusts less decodes what is missing, and no more.
  const double high = confidences_[confidences_.size() * 5 / 8];
  ASSERT_EQ(run("stricter", trust(high), "", "--reuse " + scratch_.path("both")).exit_code, 0);
  EXPECT_GT(report("stricter").at("answers"), 0);
  EXPECT_GT(report("stricter").at("reused"), 0);
  ASSERT_EQ(run("fresh", trust(high)).exit_code, 0);
  EXPECT_EQ(rows("stricter"), rows("fresh"));
}

TEST_F(TrustingRun, NothingIsDecodedWhereEverythingIsSure) {
  ASSERT_EQ(run("both", trust(1e-300), "output.format=parquet", "--set output.sources=true").exit_code, 0);
  const json about = report("both");
  EXPECT_EQ(about.at("answers").get<int64_t>() + about.at("trusted").get<int64_t>(), 4 * kRecords);
  EXPECT_EQ(run_sheaf(scratch_, "show " + scratch_.path("both")).exit_code, 0);
}

TEST_F(TrustingRun, AnotherCorpusSchemaOrKindOfRunIsRefused) {
  const auto refused = [&](const std::string& with, const std::string& set, const std::string& words) {
    const Ran ran = run("both", with, set);
    EXPECT_EQ(ran.exit_code, 2) << words;
    EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(scratch_.path("both"))) << words;
  };
  const std::string small = ", trust: {run: " + scratch_.path("small");
  refused(small + "}", "", "needs either at_least");
  refused(small + ", at_least: 0.5, precision: 0.9}", "", "needs either at_least");
  refused(small + ", precision: 0.9}", "", "needs a calibrated confidence");
  refused(small + ", at_least: 1.5}", "", "task.trust.at_least");
  refused(small + ", at_least: 0}", "", "task.trust.at_least is 0, with which every value would be taken");
  refused(trust(0.5), "input.locale=de", "was run with another input.locale (none, and this job has \"de\")");
  refused(", trust: {at_least: 0.5}", "", "run");
  refused(", trust: {run: " + scratch_.path("nowhere") + ", at_least: 0.5}", "", "nowhere");
  refused(trust(0.5), "method.values=positional", "do not depend on each other");
  refused(trust(0.5), "method.name=standard", "output.confidence");
  refused("", "output.sources=true", "works only with task.trust");
  ASSERT_EQ(run("plain", "", "output.confidence=false").exit_code, 0);
  refused(", trust: {run: " + scratch_.path("plain") + ", at_least: 0.5}", "", "have no confidence");
  const std::string corpus = read_text(scratch_.path("rows.jsonl"));
  scratch_.write("rows.jsonl", corpus + corpus);
  refused(trust(0.5), "", "was run over another corpus than");
  scratch_.write("rows.jsonl", corpus);
  scratch_.write("schema.yaml", read_text(scratch_.path("schema.yaml")) + "# changed\n");
  refused(trust(0.5), "", "was run with another schema than");
}

TEST_F(TrustingRun, CalibrateChoosesTheThresholdOrSaysThatTheSampleIsTooSmall) {
  std::string gold;
  for (const json& row : rows("small"))
    gold += json{{"id", row.at("id")}, {"category", "Tea"}, {"gold", row.at("values")}}.dump() + "\n";
  scratch_.write("gold.jsonl", gold);
  const std::string command = "calibrate " + scratch_.path("small") + " --gold " +
                              scratch_.path("gold.jsonl") + " --out " + scratch_.path("calibration.json") +
                              " --precision ";
  const Ran strict = run_sheaf(scratch_, command + "0.99");
  EXPECT_EQ(strict.exit_code, 0) << strict.err;
  EXPECT_NE(strict.out.find("and a promise needs 597 or more"), std::string::npos) << strict.out;
  EXPECT_EQ(strict.out.find("task: {trust:"), std::string::npos) << strict.out;
  const Ran loose = run_sheaf(scratch_, command + "0.6");
  EXPECT_NE(loose.out.find("task: {trust: {run: " + scratch_.path("small")), std::string::npos) << loose.out;
  const Ran wrong = run_sheaf(scratch_, command + "1.2");
  EXPECT_EQ(wrong.exit_code, 2);
}

}  // namespace
}  // namespace sheaf

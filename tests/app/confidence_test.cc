// Confidence from the run to the calibrated run: rows, `sheaf calibrate`, null biases, resuming.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "io/eval/calibrate.h"
#include "io/files/confidence_file.h"
#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;

constexpr int kProducts = 60;

class ConfidenceRun : public testing::Test {
 protected:
  void SetUp() override {
    std::string products, gold;
    for (int i = 0; i < kProducts; ++i) {
      const std::string text = fmt::format("Mug {} of {} ml", i * 7 % 50, i * 31 % 90);
      const json values = {{"Size", i % 3 == 0 ? "s" : "m"},
                           {"Form", i % 2 == 0 ? json("tall") : json(nullptr)},
                           {"Name", nullptr}};
      products += json{{"id", i}, {"text", text}}.dump() + "\n";
      gold += json{{"id", i}, {"category", "Mug"}, {"document", text}, {"gold", values}}.dump() + "\n";
    }
    scratch_.write("products.jsonl", products);
    scratch_.write("gold.jsonl", gold);
    scratch_.write("schema.yaml",
                   "categories:\n  Mug:\n"
                   "    - {name: Size, type: enum, options: [s, m]}\n"
                   "    - {name: Form, type: enum, options: [tall, flat]}\n"
                   "    - {name: Name, type: text}\n");
    scratch_.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch_) +
                                   ", chat: plain}\ninput: {path: " + scratch_.path("products.jsonl") +
                                   ", id: id, document: [text]}\ntask: {kind: extract, schema: " +
                                   scratch_.path("schema.yaml") +
                                   ", instruction: Tell}\nmethod: {max_value_tokens: 6}\n"
                                   "engine: {device: cpu, window: 20}\noutput: {path: " +
                                   scratch_.path("out") + ", confidence: true}\n");
  }

  Ran run(const std::string& folder, const std::string& more = "") const {
    return run_sheaf(scratch_, "run " + scratch_.path("job.yaml") +
                                   " --quiet --set output.path=" + scratch_.path(folder) + " " + more);
  }
  std::vector<json> rows(const std::string& folder) const {
    return read_json_lines(read_text(scratch_.path(folder + "/rows-00000.jsonl")));
  }
  Ran calibrate(const std::string& folder, const std::string& more = "") const {
    return run_sheaf(scratch_, "calibrate " + scratch_.path(folder) + " --gold " +
                                   scratch_.path("gold.jsonl") + " -o " + scratch_.path("c.json") + " " +
                                   more);
  }
  json score(const std::string& folder, const std::string& more = "") const {
    return json::parse(run_sheaf(scratch_, "score --metric attributes --resamples 0 --json --gold " +
                                               scratch_.path("gold.jsonl") + " --pred " +
                                               scratch_.path(folder) + " " + more)
                           .out);
  }

  TempFolder scratch_;
};

TEST_F(ConfidenceRun, RowsHaveAConfidencePerValue) {
  ASSERT_EQ(run("out").exit_code, 0);
  ASSERT_EQ(run("alone", "--set method.name=separate").exit_code, 0);
  const auto packed = rows("out"), alone = rows("alone");
  ASSERT_EQ(packed.size(), static_cast<size_t>(kProducts));
  for (size_t i = 0; i < packed.size(); ++i) {
    EXPECT_EQ(packed[i], alone[i]) << "to the bit";
    for (const char* name : {"Size", "Form"}) EXPECT_TRUE(packed[i].at("null_margins").at(name).is_number());
    for (const char* name : {"Size", "Form", "Name"}) {
      const double confidence = packed[i].at("confidence").at(name);
      EXPECT_TRUE(confidence > 0 && confidence < 1) << confidence;
    }
  }
  // Parquet has the same.
  ASSERT_EQ(run("table", "--set output.format=parquet").exit_code, 0);
  EXPECT_EQ(score("table")["confidence"], score("out")["confidence"]);
  ASSERT_EQ(run("places", "--set output.format=parquet --set output.spans=true").exit_code, 0);
  for (const char* more : {"", "--unmentioned-absent"})
    EXPECT_EQ(score("places", more)["nv"], score("out", more)["nv"]) << "where a value stands is no value";
}

TEST_F(ConfidenceRun, ACalibrationFileScalesConfidence) {
  ASSERT_EQ(run("out").exit_code, 0);
  const Ran fitted = calibrate("out");
  ASSERT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_NE(fitted.out.find("output: {confidence: true, calibration: " + scratch_.path("c.json") + "}"),
            std::string::npos)
      << fitted.out;
  const std::string use = "--set output.calibration=" + scratch_.path("c.json");
  ASSERT_EQ(run("scaled", use).exit_code, 0);
  const ConfidenceScales scales = read_confidence_file(scratch_.path("c.json"));
  const auto plain = rows("out"), scaled = rows("scaled");
  for (size_t i = 0; i < plain.size(); ++i)
    for (const auto& [name, value] : plain[i]["values"].items()) {
      const ConfidenceScale& scale = value.is_null() ? scales.nulls.scale : scales.values.scale;
      EXPECT_DOUBLE_EQ(scaled[i]["confidence"][name], scale.apply(plain[i]["confidence"][name]));
    }
  EXPECT_LT(score("scaled")["confidence"]["values"]["ece"], score("out")["confidence"]["values"]["ece"]);
  // It is of the plain confidence.
  const Ran again = calibrate("scaled");
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_NE(again.err.find("is already calibrated; run the job again without output.calibration"),
            std::string::npos)
      << again.err;
  // Rows of two calibrations do not stand in one folder.
  std::string other = read_text(scratch_.path("c.json"));
  other.replace(other.find("\"temperature\": "), 15, "\"temperature\": 1");
  scratch_.write("c.json", other);
  const Ran changed = run("scaled", use);
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_NE(changed.err.find("calibration"), std::string::npos) << changed.err;
}

TEST_F(ConfidenceRun, ASweepOfNullBiasesPredictsTheRunWithOne) {
  // Options that are scored as wholes know their margins, whatever null's tokens are.
  scratch_.write("schema.yaml",
                 "categories:\n  Mug:\n"
                 "    - {name: Size, type: enum, options: [s, m]}\n"
                 "    - {name: Form, type: enum, options: [tall, flat]}\n");
  ASSERT_EQ(run("out", "--set method.null_bias=-20").exit_code, 0);
  const Ran fitted = calibrate("out");
  ASSERT_EQ(fitted.exit_code, 0) << fitted.err;
  const size_t end = fitted.out.find("  best F1");
  ASSERT_NE(end, std::string::npos) << fitted.out;
  const std::string line = fitted.out.substr(fitted.out.rfind('\n', end) + 1);
  const std::string best = fmt::format("{}", std::stod(line));
  EXPECT_NE(fitted.out.find("method: {null_bias: " + best + "}"), std::string::npos) << fitted.out;
  ASSERT_EQ(run("best", "--set method.null_bias=" + best).exit_code, 0);
  const json before = score("out"), after = score("best");
  EXPECT_GT(after["vn"], before["vn"]);
  EXPECT_GT(after["micro_f1"], before["micro_f1"]);
  const std::string wanted = fmt::format(
      "{:>9.2f} {:>10.2f} {:>8.2f} {:>8.2f}", std::stod(best), after["micro_precision"].get<double>(),
      after["micro_recall"].get<double>(), after["micro_f1"].get<double>());
  EXPECT_TRUE(line.starts_with(wanted)) << wanted << "\n" << fitted.out;
}

TEST_F(ConfidenceRun, AScaleThatDoesNotHelpIsNotRecommended) {
  CalibrateResult result;
  result.scales.values.items = result.scales.nulls.items = 30;
  result.values = {0.2, 0.1};
  result.nulls = {0.1, 0.15};
  const std::string better = calibrate_text({}, result, "c.json");
  const std::string place = std::filesystem::absolute("c.json").string();
  EXPECT_NE(
      better.find("wrote c.json\nIn the job:\n  output: {confidence: true, calibration: " + place + "}"),
      std::string::npos)
      << better;
  result.nulls->after = 0.2;
  const std::string same = calibrate_text({}, result, "c.json");
  EXPECT_TRUE(
      same.ends_with("wrote c.json\nThe scaled error 0.1500 is not smaller than the plain one 0.1500: keep "
                     "the plain confidence, without this file.\n"))
      << same;
}

TEST_F(ConfidenceRun, AFileThatIsNoCalibrationIsRefused) {
  for (const char* text : {"", "{\"id\": 1}\n{\"id\": 2}\n", "{\"id\": 1}", "[]"}) {
    const Ran ran = run("out", "--set output.calibration=" + scratch_.write("no.json", text));
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_NE(ran.err.find("output.calibration must name a file that `sheaf calibrate` wrote"),
              std::string::npos)
        << ran.err;
  }
}

TEST_F(ConfidenceRun, CalibrateNamesWhatTheRunLacks) {
  ASSERT_EQ(run("plain", "--set output.confidence=false").exit_code, 0);
  const auto error = [&](const std::string& folder, const std::string& more = "") {
    const Ran ran = calibrate(folder, more);
    EXPECT_EQ(ran.exit_code, 2);
    return ran.err;
  };
  EXPECT_NE(
      error("plain").find("the rows have no confidence; run the job again with output.confidence: true"),
      std::string::npos);
  EXPECT_NE(error("none").find("name the folder of a finished run with output.confidence: true"),
            std::string::npos);
  ASSERT_EQ(run("few", "--limit 3").exit_code, 0);
  EXPECT_NE(error("few").find("20 or more are needed"), std::string::npos);
  EXPECT_NE(error("few", "--metric rouge-l").find("does not judge each answer right or wrong"),
            std::string::npos);
}

}  // namespace
}  // namespace sheaf

// The reports of a run's sessions as one.
#include <gtest/gtest.h>

#include "core/report/report.h"
#include "core/report/report_html.h"
#include "tests/task/made_up_report.h"
#include "tests/task/well_formed.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;
using test::made_up_report;

/// Every number under `path`, close; lists and texts, equal.
void expect_close(const ordered_json& a, const ordered_json& b, const std::string& path) {
  ASSERT_EQ(a.type_name(), std::string(b.type_name())) << path;
  if (a.is_number_float()) {
    EXPECT_NEAR(a.get<double>(), b.get<double>(), 1e-9 * (1 + std::abs(b.get<double>()))) << path;
  } else if (a.is_object()) {
    ASSERT_EQ(a.size(), b.size()) << path;
    for (const auto& [key, value] : a.items()) {
      ASSERT_TRUE(b.contains(key)) << path << "/" << key;
      expect_close(value, b[key], path + "/" + key);
    }
  } else {
    EXPECT_EQ(a, b) << path;
  }
}

TEST(AddReports, TwoSessionsCountAsOneRun) {
  // The second session resumes where the first was stopped; only the model is opened once more.
  ordered_json sum = add_reports(report_json(made_up_report(40)), report_json(made_up_report(60)));
  ordered_json whole = report_json(made_up_report(100));
  EXPECT_EQ(sum["sessions"], 2);
  EXPECT_EQ(sum["throughput"]["seconds"], whole["throughput"]["seconds"]);
  for (const char* key : {"steps", "rows", "tokens", "answer_tokens"}) {
    int64_t all = 0;
    for (const auto& count : sum["throughput"][key]) all += count.get<int64_t>();
    int64_t expected = 0;
    for (const auto& count : whole["throughput"][key]) expected += count.get<int64_t>();
    EXPECT_EQ(all, expected) << key;
  }
  EXPECT_NEAR(sum["seconds"]["total"].get<double>(), whole["seconds"]["total"].get<double>() + 1, 1e-9);
  EXPECT_NEAR(sum["cost"]["usd"].get<double>(), whole["cost"]["usd"].get<double>() * 52 / 51, 1e-9);
  // What those differences lead to is left out of the comparison.
  for (ordered_json* report : {&sum, &whole}) {
    for (const char* key : {"sessions", "throughput", "cost", "per_step", "sample"}) report->erase(key);
    for (const char* key : {"total", "open", "other"}) (*report)["seconds"].erase(key);
  }
  expect_close(sum, whole, "");
}

TEST(AddReports, HistogramsOfAnyWidthAddUp) {
  Report narrow, wide;
  EngineStats engine;
  int64_t expected = 0;
  for (int i = 0; i < 50; ++i) {
    ++engine.steps;
    engine.prefill_tokens += i;
    narrow.statistics.step(i, engine, {});
  }
  engine = {};
  for (int i = 0; i < 50; ++i) {
    ++engine.steps;
    engine.prefill_tokens += 1000 * i;
    wide.statistics.step(i, engine, {});
  }
  const ordered_json sum = add_reports(report_json(narrow), report_json(wide));
  const ordered_json& tokens = sum["per_step"]["tokens"];
  EXPECT_EQ(tokens["count"], 100);
  EXPECT_EQ(tokens["largest"], 49000);
  EXPECT_NEAR(tokens["mean"].get<double>(), 49.0 / 2 * 1001 / 2, 1e-9);
  EXPECT_EQ(tokens["bin_width"], 1024);
  for (const auto& count : tokens["bins"]) expected += count.get<int64_t>();
  EXPECT_EQ(expected, 100);
  EXPECT_EQ(tokens["bins"][0], 52) << "the fifty small ones, 0 and 1000";
}

TEST(AddReports, CategoriesAndReasonsAddUp) {
  Report a = made_up_report(8, "Shoes"), b = made_up_report(4, "Tea");
  auto reject = [line = 0](Report& report, const char* reason) mutable {
    Reject row;
    row.place = {"some/a.jsonl", ++line};
    row.reason = reason;
    report.statistics.reject(row);
  };
  reject(a, "the document is empty");
  reject(b, "the document is empty");
  reject(b, "not a JSON object");
  const ordered_json sum = add_reports(report_json(a), report_json(b));
  ASSERT_EQ(sum["values"].size(), 2u);
  const ordered_json again = add_reports(sum, report_json(made_up_report(8, "Shoes")));
  for (const auto& category : again["values"])
    EXPECT_EQ(category["rows"], category["category"] == "Tea" ? 4 : 16);
  EXPECT_EQ(sum["reject_reasons"], (ordered_json{{{"kind", "the document is empty"},
                                                  {"records", 2},
                                                  {"example", "the document is empty"},
                                                  {"place", "a.jsonl:1"}},
                                                 {{"kind", "not a JSON object"},
                                                  {"records", 1},
                                                  {"example", "not a JSON object"},
                                                  {"place", "a.jsonl:3"}}}));
  EXPECT_EQ(test::xml_fault(report_html(again)), "");
}

TEST(AddReports, PredictionsAddUpWhereBothHaveOne) {
  Report report = made_up_report(10);
  const ordered_json without = report_json(report);
  report.predicted_seconds = 4;
  const ordered_json with = report_json(report);
  EXPECT_NEAR(with["predicted"]["ratio"].get<double>(), 4 / 5.0, 1e-9);
  const ordered_json both = add_reports(with, with);
  EXPECT_NEAR(both["predicted"]["decode_seconds"].get<double>(), 8, 1e-9);
  EXPECT_NEAR(both["predicted"]["ratio"].get<double>(), 4 / 5.0, 1e-9);
  EXPECT_TRUE(add_reports(without, with)["predicted"].is_null());
  EXPECT_TRUE(add_reports(with, without)["predicted"].is_null());
  EXPECT_NE(report_text(both).find("expected 8.00 s"), std::string::npos);
}

TEST(AddReports, EnginesAddUpByName) {
  Report two = made_up_report(40);
  two.engines = {{.name = "GPU 0", .stats = {.steps = 3, .answers = 5, .step_seconds = 2}},
                 {.name = "GPU 1", .stats = {.steps = 4, .answers = 6, .step_seconds = 4}, .failed = "gone"}};
  const ordered_json one = report_json(made_up_report(40)), several = report_json(two);
  EXPECT_EQ(one.count("engines"), 0u);
  EXPECT_NEAR(several["seconds"]["decode"].get<double>(), one["seconds"]["decode"].get<double>() / 2, 1e-9)
      << "they work side by side";
  Report other = two;
  other.engines[1].name = "GPU 7";
  other.engines[1].failed.clear();
  const ordered_json sum = add_reports(several, report_json(other));
  ASSERT_EQ(sum["engines"].size(), 3u);
  EXPECT_EQ(sum["engines"][0]["answers"], 10);
  EXPECT_EQ(sum["engines"][0]["decode_seconds"], 4);
  EXPECT_EQ(sum["engines"][1]["name"], "GPU 7");
  EXPECT_EQ(sum["engines"][2]["failed"], "gone");
  EXPECT_EQ(add_reports(several, one)["engines"], several["engines"]);
  EXPECT_NE(report_text(several).find(
                "  engine   GPU 1: 6 answers, 0 tokens computed in 4.00 s of 4 steps; FAILED: gone\n"),
            std::string::npos)
      << report_text(several);
  EXPECT_NE(report_html(several).find("<b>failed</b>: gone"), std::string::npos);
}

TEST(AddReports, AValueThatIsNoReportIsRefused) {
  const ordered_json good = report_json(made_up_report(3));
  for (const auto& [key, value] : good.items()) {
    if (key == "version" || key == "job" || key == "model" || key == "backend" || key == "method" ||
        key == "chat" || key == "sheaf" || key == "date" || key == "corpus" || key == "settings" ||
        key == "changed_settings" || key == "predicted" || key == "reused" || key == "trusted" ||
        key == "sample" || key.ends_with("_per_second") || key.ends_with("_per_step"))
      continue;  // taken from the later one, or computed again
    ordered_json part = good;
    part.erase(key);
    EXPECT_THROW(add_reports(part, good), ordered_json::exception) << key;
  }
}

}  // namespace
}  // namespace sheaf

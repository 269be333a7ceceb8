#include "core/report/report.h"

#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

#include "core/report/report_fields.h"
#include "core/report/report_html.h"
#include "core/report/svg_plot.h"
#include "core/task/record.h"
#include "core/text/format.h"
#include "tests/files.h"
#include "tests/task/made_up_report.h"
#include "tests/task/well_formed.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;
using test::answer_of;
using test::made_up_report;
using test::xml_fault;

int64_t sum_of(const ordered_json& list) {
  int64_t sum = 0;
  for (const auto& each : list) sum += each.get<int64_t>();
  return sum;
}

Reject reject_of(const std::string& reason) {
  Reject reject;
  reject.place = {"some/corpus.jsonl", 4};
  reject.reason = reason;
  return reject;
}

size_t times(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(Histogram, MergesNeighboursAndLosesNothing) {
  Histogram histogram;
  const auto width = [&] { return histogram.json()["bin_width"].get<int64_t>(); };
  const auto bins = [&] { return histogram.json()["bins"].get<std::vector<int64_t>>(); };
  for (int64_t value : {0, 1, 1, 63}) histogram.add(value);
  EXPECT_EQ(width(), 1);
  EXPECT_EQ(bins()[1], 2);
  histogram.add(64);
  EXPECT_EQ(width(), 2);
  EXPECT_EQ(bins()[0], 3);
  EXPECT_EQ(bins()[31], 1);
  EXPECT_EQ(bins()[32], 1);
  histogram.add(1000000);
  const auto all = bins();
  EXPECT_LE(all.size(), Histogram::kBins);
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), int64_t{0}), 6);
  EXPECT_EQ(bins()[static_cast<size_t>(1000000 / width())], 1);
  EXPECT_EQ(histogram.json()["largest"], 1000000);
  EXPECT_EQ(histogram.json()["mean"], 1000129.0 / 6);
}

TEST(Throughput, IsBoundedHoweverLongTheRun) {
  Throughput throughput;
  int64_t tokens = 0;
  for (int i = 0; i < 100000; ++i) {
    throughput.add(0.7 * i, {1, i % 2, i, 3});
    tokens += i;
  }
  EXPECT_LE(throughput.points().size(), Throughput::kPoints);
  EXPECT_GT(throughput.points().size(), Throughput::kPoints / 2);
  const ordered_json json = throughput.json();
  EXPECT_EQ(sum_of(json["steps"]), 100000);
  EXPECT_EQ(sum_of(json["rows"]), 50000);
  EXPECT_EQ(sum_of(json["tokens"]), tokens);
  EXPECT_EQ(sum_of(json["answer_tokens"]), 300000);
  // Evenly spread work stays so: every whole point has what its time holds.
  const double expected = throughput.point_seconds() / 0.7;
  for (size_t i = 0; i + 1 < throughput.points().size(); ++i)
    EXPECT_NEAR(static_cast<double>(throughput.points()[i].steps), expected, 1.01);
}

TEST(Throughput, SurvivesALongPause) {
  Throughput throughput;
  throughput.add(0, {1, 1, 1, 1});
  throughput.add(1e6, {1, 1, 1, 1});
  EXPECT_LE(throughput.points().size(), Throughput::kPoints);
  EXPECT_EQ(sum_of(throughput.json()["rows"]), 2);
}

TEST(Report, EveryFigureIsDocumentedAndOnThePage) {
  const std::string docs = read_text(SHEAF_SOURCE_DIR "/docs/report.md");
  const ordered_json report = report_json(made_up_report(8));
  const std::string page = report_html(report);
  std::set<std::string_view> paths;
  for (const ReportField& field : report_fields()) {
    if (field.path.empty()) continue;
    EXPECT_TRUE(paths.insert(field.path).second) << field.path << " is there twice";
    EXPECT_NE(docs.find(field.path.substr(field.path.rfind('/') + 1)), std::string::npos) << field.path;
    if (!field.value(report)) continue;
    std::string name(field.path.substr(1));
    std::ranges::replace(name, '/', '.');
    EXPECT_NE(page.find("<td>" + name + "</td>"), std::string::npos) << name;
  }
}

TEST(Report, TotalsAgree) {
  const ordered_json json = report_json(made_up_report(1000));
  EXPECT_EQ(json["version"], kReportVersion);
  EXPECT_EQ(json["rows"], 1000);
  EXPECT_EQ(sum_of(json["throughput"]["rows"]), 1000);
  EXPECT_EQ(sum_of(json["throughput"]["steps"]), json["steps"]);
  EXPECT_EQ(sum_of(json["throughput"]["tokens"]), json["tokens"]["computed"]);
  EXPECT_EQ(sum_of(json["throughput"]["answer_tokens"]), json["tokens"]["answers"]);
  EXPECT_EQ(json["tokens"]["saved"], 200000);
  EXPECT_EQ(sum_of(json["per_step"]["tokens"]["bins"]), json["steps"]);
  EXPECT_DOUBLE_EQ(json["per_step"]["tokens"]["mean"], json["tokens_per_step"]);
  EXPECT_DOUBLE_EQ(json["per_step"]["slots"]["mean"], 12);
  EXPECT_EQ(json["value_tokens"]["count"], json["answers"]);
  EXPECT_DOUBLE_EQ(json["value_tokens"]["mean"], 6);
  EXPECT_EQ(json["endings"]["length"], 250);
  EXPECT_EQ(sum_of(json["endings"]), json["answers"]);
  EXPECT_NEAR(json["stall"]["share"].get<double>(), 0.1, 1e-9);
  // 501 s of two devices at 3.60 an hour
  EXPECT_NEAR(json["cost"]["usd"].get<double>(), 1.002, 1e-9);
  EXPECT_NEAR(json["cost"]["usd_per_1000_rows"].get<double>(), 1.002, 1e-9);
  double stages = 0;
  for (const char* stage : {"open", "read", "plan", "decode", "write", "other"})
    stages += json["seconds"][stage].get<double>();
  EXPECT_NEAR(stages, json["seconds"]["total"].get<double>(), 1e-6);
}

TEST(Report, OfVersion3CountsTheRowsOfAKilledSession) {
  ordered_json report = report_json(made_up_report(1000));
  report["version"] = 3;
  report["rows"] = 900;
  report["rows_uncounted"] = 100;
  report["rejects"] = 3;
  report["rejects_uncounted"] = 2;
  const ordered_json now = read_report(report.dump(), "report.json");
  EXPECT_EQ(now["version"], kReportVersion);
  EXPECT_EQ(now["rows"], 1000);
  EXPECT_EQ(now["rejects"], 5);
  EXPECT_EQ(counted_rows(now), 900);
  report["rows_uncounted"] = "many";
  EXPECT_THROW(read_report(report.dump(), "report.json"), Error);
}

TEST(Report, CountsValuesByCategoryAndAttribute) {
  const ordered_json values = report_json(made_up_report(8))["values"];
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0]["category"], "Shoes");
  EXPECT_EQ(values[0]["rows"], 8);
  EXPECT_EQ(values[0]["attributes"][0], ordered_json({{"name", "Colour"},
                                                      {"asked", 8},
                                                      {"found", 6},
                                                      {"noted", 2},
                                                      {"cut", 0},
                                                      {"literal", 0},
                                                      {"common", {{{"value", "red"}, {"rows", 6}}}}}));
  EXPECT_EQ(values[0]["attributes"][1], ordered_json({{"name", "Size"},
                                                      {"asked", 8},
                                                      {"found", 8},
                                                      {"noted", 0},
                                                      {"cut", 0},
                                                      {"literal", 0},
                                                      {"common", {{{"value", "42"}, {"rows", 8}}}}}));
}

TEST(Report, CountsAnswersOfNestedAndSingleQuestions) {
  RunStatistics statistics;
  statistics.row({1, std::vector<QuestionAnswer>{{1, {"yes"}}, {2, {}}}}, {answer_of(1), answer_of(2)});
  statistics.row({2, RowAnswer{nullptr, "cut"}}, {answer_of(3)});
  ordered_json json;
  statistics.add_to(json);
  EXPECT_EQ(json["questions"], ordered_json({{"asked", 3}, {"answered", 1}, {"noted", 1}}));
  EXPECT_TRUE(json["values"].empty());
  EXPECT_EQ(json["value_tokens"]["count"], 3);
}

TEST(Report, KindOfAReasonKeepsNamesAndDropsNumbers) {
  EXPECT_EQ(reason_kind("not valid UTF-8 at byte 40"), "not valid UTF-8 at byte N");
  EXPECT_EQ(reason_kind("rows 13-27 cannot be read"), "rows N-N cannot be read");
  EXPECT_EQ(reason_kind("int64 is no text"), "int64 is no text");
  EXPECT_EQ(reason_kind("column \"a 1\" is \"b\", 7"), "column \"a 1\" is \"…\", N");
  EXPECT_EQ(reason_kind("an open \" quote"), "an open \" quote");
  EXPECT_EQ(reason_kind(""), "");
}

TEST(Report, GroupsRejectsByKindAndKeepsTheMostFrequent) {
  RunStatistics statistics;
  for (int i = 0; i < 5; ++i) statistics.reject(reject_of(fmt::format("the category \"c{}\" is unknown", i)));
  for (int i = 0; i < 7; ++i) statistics.reject(reject_of(fmt::format("{} tokens do not fit", 900 + i)));
  for (int i = 0; i < 2000; ++i) {
    std::string strange = "strange ";
    for (int n = i; n >= 0; n = n / 26 - 1) strange += static_cast<char>('a' + n % 26);
    statistics.reject(reject_of(strange));
  }
  statistics.reject(reject_of("bad bytes \xff"));
  ordered_json json;
  statistics.add_to(json);
  const ordered_json& reasons = json["reject_reasons"];
  ASSERT_EQ(reasons.size(), 21u);
  EXPECT_EQ(reasons[0], ordered_json({{"kind", "N tokens do not fit"},
                                      {"records", 7},
                                      {"example", "900 tokens do not fit"},
                                      {"place", "corpus.jsonl:4"}}));
  EXPECT_EQ(reasons[1]["kind"], "the category \"…\" is unknown");
  EXPECT_EQ(reasons[1]["records"], 5);
  EXPECT_EQ(reasons[20]["kind"], "other reasons");
  int64_t rows = 0;
  for (const auto& reason : reasons) rows += reason["records"].get<int64_t>();
  EXPECT_EQ(rows, 2013);
  EXPECT_NO_THROW(json.dump());
}

TEST(CommonValues, FindsTheMostFrequentOfManyValues) {
  CommonValues values;
  for (int i = 0; i < 3000; ++i) values.add(i % 3 == 0 ? "10K" : fmt::format("v{}", i));
  const ordered_json found = values.json();
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0]["value"], "10K");
  EXPECT_LE(found[0]["rows"], 1000);
  EXPECT_GE(found[0]["rows"], 990) << "it comes early and never leaves";
  for (size_t i = 1; i < found.size(); ++i) EXPECT_LE(found[i]["rows"], 1);
  CommonValues few;
  for (const char* value : {"b", "a", "b", "c"}) few.add(value);
  ordered_json sum = few.json();
  EXPECT_EQ(sum, ordered_json({{{"value", "b"}, {"rows", 2}},
                               {{"value", "a"}, {"rows", 1}},
                               {{"value", "c"}, {"rows", 1}}}));
  for (const ordered_json& value : found) sum.push_back(value);
  keep_common(sum);
  EXPECT_EQ(sum.size(), 5u);
  EXPECT_EQ(sum[0]["value"], "10K");
  EXPECT_EQ(sum[1]["value"], "b");
}

TEST(ReportPage, MarksAValueThatEveryRowHas) {
  const std::string page = report_html(report_json(made_up_report(8)));
  EXPECT_NE(page.find("<b class=\"bad\">100 % of the values are “42”</b>"), std::string::npos);
  EXPECT_NE(page.find("0 % literally in the document"), std::string::npos);
  EXPECT_NE(page.find("2 null"), std::string::npos);
}

TEST(ReportPage, IsWellFormedAndNeedsNothingElse) {
  ASSERT_NE(xml_fault("<p><b>x</p></b>"), "") << "the check itself";
  ASSERT_NE(xml_fault("<p a=1>x</p>"), "");
  ASSERT_NE(xml_fault("<p>a & b</p>"), "");
  Report report = made_up_report(1000);
  report.engines = {{.name = "a GPU", .device_seconds = {{Stage::attention, 3}, {Stage::mlp_up, 5}}}};
  const std::string page = report_html(report_json(report));
  EXPECT_EQ(xml_fault(page), "");
  EXPECT_EQ(times(page, "<script"), 0u);
  EXPECT_EQ(times(page, "http"), 0u);
  EXPECT_EQ(times(page, "nan"), 0u);
  for (const char* wanted :
       {"jobs/night.yaml", "$1.0020", "200,000", "attention", "Colour", "75.0 %", "No record was rejected",
        "rows a second", "prefers-color-scheme: dark", "@media print"})
    EXPECT_GT(times(page, wanted), 0u) << wanted;
}

TEST(ReportPage, AnEmptyRunHasAPage) {
  const std::string page = report_html(report_json(Report{}));
  EXPECT_EQ(xml_fault(page), "");
  EXPECT_EQ(times(page, "nan"), 0u);
  EXPECT_EQ(times(page, "inf "), 0u);
}

TEST(ReportPage, EscapesWhatComesFromOutside) {
  const std::string nasty = "<script>alert(\"x\")</script> & 'y' \x01";
  Report report = made_up_report(8, nasty);
  report.job = report.model = report.backend = report.method = nasty;
  report.statistics.reject(reject_of(nasty));
  report.pipeline.rejects = 1;
  NamedReport named{nasty, report_json(report)};
  named.json["device_seconds"][nasty] = 1;
  for (const std::string& page : {report_html(named.json), comparison_html({named, named})}) {
    EXPECT_EQ(xml_fault(page), "");
    EXPECT_EQ(times(page, "<script"), 0u);
    EXPECT_GT(times(page, "&lt;script&gt;"), 0u);
    EXPECT_EQ(times(page, "\x01"), 0u);
  }
}

TEST(Comparison, RunsOverDifferentCorporaHaveNoBest) {
  Report fast = made_up_report(100), slow = made_up_report(100);
  slow.total_seconds *= 2;
  for (const auto& change :
       std::vector<std::function<void(Report&)>>{[](Report& report) { report.corpus_sha256 = "other"; },
                                                 [](Report& report) { report.limit = 9; }}) {
    Report other = fast;
    change(other);
    const std::vector<NamedReport> runs = {{"out/slow", report_json(slow)}, {"out/fast", report_json(other)}};
    EXPECT_EQ(times(comparison_text(runs), "*"), 0u);
    EXPECT_EQ(times(comparison_text(runs), "different corpora or different parts of one"), 1u);
    EXPECT_EQ(times(comparison_html(runs), "different corpora or different parts of one"), 1u);
  }
  ordered_json old = report_json(slow);  // of a sheaf that did not say
  for (const char* key : {"sheaf", "date", "corpus", "settings"}) old.erase(key);
  EXPECT_GT(times(comparison_text({{"out/slow", old}, {"out/fast", report_json(fast)}}), " *"), 0u);
}

TEST(Plots, TimeHasOneUnit) {
  EXPECT_NE(line_plot("t", {1, 2}, 7.9, 7.9, 2).find(">6 s<"), std::string::npos);
  const std::string hours = line_plot("t", {1, 2}, 9000, 36000, 2);
  EXPECT_NE(hours.find(">10 h<"), std::string::npos) << hours;
  EXPECT_EQ(times(hours, " h<"), 1u) << "said once";
  EXPECT_EQ(times(hours, " min"), 0u);
}

TEST(Comparison, SetsRunsSideBySideAndMarksTheBest) {
  Report fast = made_up_report(100), slow = made_up_report(100);
  slow.total_seconds *= 2;
  const std::vector<NamedReport> runs = {{"out/slow", report_json(slow)}, {"out/fast", report_json(fast)}};
  bool seen = false;
  for (const ComparedFact& fact : compare_reports(runs)) {
    ASSERT_EQ(fact.cells.size(), 2u) << fact.name;
    ASSERT_EQ(fact.best.size(), 2u) << fact.name;
    if (fact.name == "rows a second") {
      seen = true;
      EXPECT_EQ(fact.cells[1], "2");
      EXPECT_EQ(fact.best, (std::vector<bool>{false, true}));
    }
    if (fact.name == "tokens computed") {
      EXPECT_EQ(fact.best, (std::vector<bool>{false, false})) << "they are equal";
    }
  }
  EXPECT_TRUE(seen);
  const std::string text = comparison_text(runs);
  EXPECT_NE(text.find("out/slow"), std::string::npos);
  EXPECT_NE(text.find("2 *\n"), std::string::npos) << text;
  EXPECT_EQ(xml_fault(comparison_html(runs)), "");
}

TEST(ReportNumbers, AreShortAndReadable) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(1234567), "1,234,567");
  EXPECT_EQ(number_text(-1234.4), "-1,234");
  EXPECT_EQ(number_text(123), "123");
  EXPECT_EQ(number_text(1.23456), "1.23");
  EXPECT_EQ(number_text(0.00123), "0.00123");
  EXPECT_EQ(time_text(0.421), "0.42 s");
  EXPECT_EQ(time_text(245), "4 min 5 s");
  EXPECT_EQ(time_text(3600), "1 h");
  EXPECT_EQ(time_text(7800), "2 h 10 min");
  EXPECT_EQ(time_text(3 * 86400 + 4 * 3600), "3 days 4 h");
  EXPECT_EQ(time_text(480 * 3600 + 405), "20 days");
}

}  // namespace
}  // namespace sheaf

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/report/report.h"
#include "core/report/report_html.h"
#include "tests/task/made_up_report.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

ordered_json whole_report() {
  Report report = test::made_up_report(40);
  report.engines = {{.name = "a GPU", .device_seconds = {{Stage::attention, 1.5}}}};
  report.predicted_seconds = 3;
  report.predicted_error = 0.1;
  Reject reject;
  reject.reason = "row 7: \"x\" is missing";
  report.statistics.reject(reject);
  return report_json(report);
}

/// What `report.json` may be turned into by hand or by a damaged disk: refused with its name, or harmless.
void show_everywhere(const ordered_json& report) {
  check_report(report, "out/report.json");
  const ordered_json sum = add_reports(report, report);
  for (const ordered_json* each : {&report, &sum}) {
    EXPECT_FALSE(report_text(*each).empty());
    EXPECT_FALSE(report_html(*each).empty());
    EXPECT_FALSE(comparison_html({{"a", *each}, {"b", report}}).empty());
    EXPECT_FALSE(comparison_text({{"a", *each}, {"b", report}}).empty());
  }
}

std::string refusal_of(const ordered_json& report) {
  try {
    show_everywhere(report);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(ReportCheck, TakesEveryReportThatSheafWrites) {
  EXPECT_EQ(refusal_of(whole_report()), "");
  EXPECT_EQ(refusal_of(report_json(Report{})), "");
  EXPECT_EQ(refusal_of(add_reports(whole_report(), whole_report())), "");
}

TEST(ReportCheck, ReadsAReportOfVersionTwo) {
  ordered_json old = whole_report();
  const auto rename = [](ordered_json& object, const char* now, const char* before) {
    object[before] = object.at(now);
    object.erase(now);
  };
  old["version"] = 2;
  rename(old, "rows", "items");
  rename(old, "rows_per_second", "items_per_second");
  rename(old["cost"], "usd_per_1000_rows", "usd_per_1000_items");
  rename(old["throughput"], "rows", "items");
  for (ordered_json& category : old["values"]) rename(category, "rows", "items");
  for (ordered_json& reason : old["reject_reasons"]) rename(reason, "records", "rows");
  EXPECT_NE(refusal_of(old), "");
  update_report(old);
  EXPECT_EQ(refusal_of(old), "");
  EXPECT_EQ(nlohmann::json(old), nlohmann::json(whole_report()));
}

TEST(ReportCheck, NamesTheFileAndTheKey) {
  ordered_json report = whole_report();
  report["tokens"]["computed"] = "many";
  EXPECT_EQ(refusal_of(report),
            "out/report.json: the report is damaged: tokens.computed is not a count; run the job again with "
            "--restart");
  report = whole_report();
  report["per_step"]["slots"]["bin_width"] = 0;
  EXPECT_EQ(refusal_of(report),
            "out/report.json: the report is damaged: per_step.slots.bin_width is 0; run the job again with "
            "--restart");
  report = whole_report();
  report["version"] = 1;
  EXPECT_NE(refusal_of(report).find("use the sheaf that wrote it"), std::string::npos);
  EXPECT_NE(refusal_of(ordered_json::array()).find("it has no version"), std::string::npos);
}

TEST(ReportCheck, AnyValueInAnyPlaceIsRefusedOrHarmless) {
  const ordered_json good = whole_report();
  const std::vector<ordered_json> others = {nullptr,
                                            true,
                                            -1,
                                            0,
                                            INT64_MAX,
                                            UINT64_MAX,
                                            1e308,
                                            -0.5,
                                            "text",
                                            ordered_json::array(),
                                            ordered_json::array({1, "x"}),
                                            ordered_json::array({ordered_json::object()}),
                                            ordered_json::object(),
                                            {{"category", 1}}};
  int refused = 0, taken = 0;
  const ordered_json flat = good.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    // Every leaf, and every list and object on the way to it.
    for (auto at = ordered_json::json_pointer(pointer); !at.empty(); at = at.parent_pointer()) {
      for (const ordered_json& other : others) {
        ordered_json wrong = good;
        wrong[at] = other;
        const std::string refusal = refusal_of(wrong);
        EXPECT_TRUE(refusal.empty() || refusal.starts_with("out/report.json: ")) << refusal;
        (refusal.empty() ? taken : refused) += 1;
      }
      ordered_json wrong = good;
      if (wrong[at.parent_pointer()].is_object()) {
        wrong[at.parent_pointer()].erase(at.back());
        refusal_of(wrong);
      }
    }
  }
  EXPECT_GT(refused, taken);
  EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace sheaf

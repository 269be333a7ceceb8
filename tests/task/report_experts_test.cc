// What a report says of a mixture of experts.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/report/report.h"
#include "core/report/report_html.h"
#include "tests/task/made_up_report.h"
#include "tests/task/well_formed.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

Routing routing_of(std::initializer_list<std::vector<int64_t>> passes) {
  Routing routing;
  for (const auto& pass : passes) routing.add(pass);
  return routing;
}

Report routed_report(const Routing& routing) {
  Report report = test::made_up_report(10);
  report.engines = {{.name = "a CPU", .routing = routing}};
  return report;
}

TEST(ExpertsInReports, SayHowUnevenTheRoutingWas) {
  // Two layers of one step: means of 4 and 4, busiest 6 and 10, least 2 and 0.
  const Report report = routed_report(routing_of({{2, 6, 4, 4}, {0, 10, 1, 5}}));
  const ordered_json json = report_json(report);
  const ordered_json& experts = json.at("experts");
  EXPECT_EQ(experts.at("count"), 4);
  EXPECT_EQ(experts.at("passes"), 2);
  EXPECT_EQ(experts.at("tokens"), 32);
  EXPECT_EQ(experts.at("mean_per_step"), 4.0);
  EXPECT_EQ(experts.at("least_per_step"), 1.0);
  EXPECT_EQ(experts.at("busiest_over_mean"), 2.0);
  EXPECT_EQ(experts.at("idle_share"), 0.125);
  const ordered_json& histogram = json.at("per_step").at("expert_tokens");
  EXPECT_EQ(histogram.at("count"), 8);
  EXPECT_EQ(histogram.at("largest"), 10);
  EXPECT_EQ(histogram.at("bins").dump(), "[1,1,1,0,2,1,1,0,0,0,1]");
  EXPECT_NE(report_text(json).find("experts  4.0 tokens per expert and step, the least used 1.0, the busiest "
                                   "2.00 times the mean; 12.5 % without a token\n"),
            std::string::npos)
      << report_text(json);
  const std::string page = report_html(json);
  EXPECT_EQ(test::xml_fault(page), "");
  EXPECT_NE(page.find("<h2>Experts</h2>"), std::string::npos);
  EXPECT_NO_THROW(check_report(json, "report.json"));
}

TEST(ExpertsInReports, AreNotThereWithoutExperts) {
  const ordered_json json = report_json(routed_report({}));
  EXPECT_FALSE(json.contains("experts"));
  EXPECT_FALSE(json.at("per_step").contains("expert_tokens"));
  EXPECT_EQ(report_text(json).find("experts"), std::string::npos);
  EXPECT_EQ(report_html(json).find("<h2>Experts</h2>"), std::string::npos);
  EXPECT_EQ(comparison_text({{"a", json}, {"b", json}}).find("expert"), std::string::npos);
}

TEST(ExpertsInReports, AddUpOverEnginesAndSessions) {
  const Routing first = routing_of({{2, 6, 4, 4}}), second = routing_of({{0, 10, 1, 500}});
  const Routing both = routing_of({{2, 6, 4, 4}, {0, 10, 1, 500}});
  Report engines = routed_report(first);
  engines.engines.push_back({.name = "another", .routing = second});
  const ordered_json whole = report_json(routed_report(both));
  EXPECT_EQ(report_json(engines).at("experts"), whole.at("experts"));
  EXPECT_EQ(report_json(engines).at("per_step").at("expert_tokens"),
            whole.at("per_step").at("expert_tokens"));
  const ordered_json sum = add_reports(report_json(routed_report(first)), report_json(routed_report(second)));
  EXPECT_EQ(sum.at("experts"), whole.at("experts"));
  EXPECT_EQ(sum.at("per_step").at("expert_tokens"), whole.at("per_step").at("expert_tokens"));
  // A session that ended before its first step has counted nothing.
  const ordered_json none = report_json(routed_report({})), some = report_json(routed_report(first));
  EXPECT_EQ(add_reports(none, some).at("experts"), some.at("experts"));
  EXPECT_EQ(add_reports(some, none).at("experts"), some.at("experts"));
  EXPECT_NO_THROW(check_report(add_reports(some, none), "report.json"));
}

TEST(ExpertsInReports, DamagedOnesAreRefused) {
  const ordered_json good = report_json(routed_report(routing_of({{2, 6, 4, 4}})));
  for (const char* path : {"/experts/passes", "/experts/idle_share", "/per_step/expert_tokens"}) {
    ordered_json wrong = good;
    wrong[ordered_json::json_pointer(path)] = -1;
    EXPECT_THROW(check_report(wrong, "report.json"), Error) << path;
    const ordered_json::json_pointer place(path);
    wrong[place.parent_pointer()].erase(place.back());
    EXPECT_THROW(check_report(wrong, "report.json"), Error) << path;
  }
  ordered_json empty = good;
  empty["experts"] = nullptr;
  EXPECT_NO_THROW(check_report(empty, "report.json"));
  EXPECT_NO_THROW(report_html(add_reports(empty, empty)));
}

}  // namespace
}  // namespace sheaf

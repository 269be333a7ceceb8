// `sheaf report` on folders that hold nothing but a report.
#include <gtest/gtest.h>

#include "tests/app/program.h"
#include "tests/task/made_up_report.h"
#include "tests/task/well_formed.h"

namespace sheaf {
namespace {

using test::made_up_report;
using test::Ran;
using test::run_sheaf;
using test::xml_fault;

std::string make_reported(const TempFolder& scratch, const std::string& name, const std::string& report) {
  std::filesystem::create_directory(scratch.path(name));
  scratch.write(name + "/report.json", report);
  return scratch.path(name);
}

std::string report_of(int steps) {
  return report_json(made_up_report(steps)).dump(2) + "\n";
}

TEST(ReportCommand, MakesThePageOfARunAgain) {
  const TempFolder scratch;
  const std::string run = make_reported(scratch, "night", report_of(50));
  const Ran ran = run_sheaf(scratch, "report " + run);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find(run + "/report.html"), std::string::npos) << ran.out;
  const std::string page = read_text(run + "/report.html");
  EXPECT_EQ(xml_fault(page), "");
  EXPECT_NE(page.find("jobs/night.yaml"), std::string::npos);
  EXPECT_EQ(run_sheaf(scratch, "report " + run + " --out " + scratch.path("page.html")).exit_code, 0);
  EXPECT_EQ(read_text(scratch.path("page.html")), page);
}

TEST(ReportCommand, AFolderThatCannotBeWrittenIsReportedAllTheSame) {
  const TempFolder scratch;
  const std::string run = make_reported(scratch, "night", report_of(50));
  std::filesystem::create_directories(run + "/report.html/in the way");
  const Ran ran = run_sheaf(scratch, "report " + run);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find(" rows, "), std::string::npos) << ran.out;
  EXPECT_NE(ran.err.find("the page is not written: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("sheaf report " + run + " --out report.html"), std::string::npos) << ran.err;
  EXPECT_EQ(run_sheaf(scratch, "report " + run + " --out " + scratch.path("no/page.html")).exit_code, 2);
}

TEST(ReportCommand, ShowsWhenHowAndOverWhatARunRan) {
  const TempFolder scratch;
  const std::string model = test::make_tiny_model(scratch);
  const std::string corpus = scratch.write("c.jsonl", R"({"c":"A red cup.","q":"Which colour?"})"
                                                      "\n"
                                                      R"({"c":"A blue cup.","q":"Which colour?"})"
                                                      "\n");
  const auto run = [&](const std::string& name, const std::string& more) {
    const std::string job = scratch.write(
        "job.yaml",
        "model: {path: " + model + "}\ninput: {path: " + corpus +
            ", context: c, question: q}\ntask: {kind: ask}\nmethod: {name: standard, max_value_tokens: 3}\n"
            "output: {path: " +
            scratch.path(name) + "}\n");
    const Ran ran = run_sheaf(scratch, "run --device cpu " + job + more);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return scratch.path(name);
  };
  const std::string all = run("all", ""), one = run("one", " --limit 1"), again = run("again", "");
  const std::string page = read_text(all + "/report.html");
  EXPECT_EQ(xml_fault(page), "");
  for (const std::string& part : {std::string(" UTC · sheaf " SHEAF_VERSION " · ") + corpus,
                                  std::string("<td>method.name</td><td>standard</td>"),
                                  std::string("<td>method.max_value_tokens</td><td>3</td>")})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  const std::string out = " --out " + scratch.path("both.html");
  EXPECT_NE(run_sheaf(scratch, "report " + all + " " + one + out).out.find("different corpora"),
            std::string::npos);
  EXPECT_EQ(run_sheaf(scratch, "report " + all + " " + again + out).out.find("different corpora"),
            std::string::npos);
}

TEST(ReportCommand, ComparesRuns) {
  const TempFolder scratch;
  const std::string a = make_reported(scratch, "a", report_of(50)),
                    b = make_reported(scratch, "b", report_of(70));
  const Ran ran = run_sheaf(scratch, "report " + a + " " + b + " --out " + scratch.path("both.html"));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("rows a second"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("5,000 *"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("7,000\n"), std::string::npos) << ran.out;
  const std::string page = read_text(scratch.path("both.html"));
  EXPECT_EQ(xml_fault(page), "");
  EXPECT_NE(page.find(a), std::string::npos);
  EXPECT_NE(page.find(b), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(a + "/report.html")) << "a comparison leaves the runs alone";
}

TEST(ReportCommand, AFileThatIsNoReportIsRefused) {
  const TempFolder scratch;
  std::filesystem::create_directory(scratch.path("empty"));
  nlohmann::ordered_json later = nlohmann::ordered_json::parse(report_of(4)), part = later;
  later["version"] = 5;
  part.erase("tokens");
  const std::string good = make_reported(scratch, "good", report_of(3));
  struct Case {
    std::string run, said;
  };
  for (const Case& wrong :
       {Case{scratch.path("empty"), "no report.json"}, Case{scratch.path("nowhere"), "no such folder"},
        Case{make_reported(scratch, "cut", report_of(3).substr(0, 200)), "cut/report.json"},
        Case{make_reported(scratch, "list", "[]"), "no version"},
        Case{make_reported(scratch, "old", "{\"rows\": 3}"), "no version"},
        Case{make_reported(scratch, "later", later.dump()), "version 5"},
        Case{make_reported(scratch, "part", part.dump()),
             "part/report.json: the report is damaged: tokens is missing"}}) {
    const Ran alone = run_sheaf(scratch, "report " + wrong.run);
    EXPECT_EQ(alone.exit_code, 2) << wrong.run;
    EXPECT_NE(alone.err.find(wrong.said), std::string::npos) << alone.err;
    const Ran beside =
        run_sheaf(scratch, "report " + good + " " + wrong.run + " --out " + scratch.path("both.html"));
    EXPECT_EQ(beside.exit_code, 2) << wrong.run;
    EXPECT_NE(beside.err.find(wrong.said), std::string::npos) << beside.err;
  }
  EXPECT_FALSE(std::filesystem::exists(scratch.path("both.html")));
  EXPECT_EQ(run_sheaf(scratch, "report " + good + " --out " + scratch.path("no/such/page.html")).exit_code,
            2);
  EXPECT_EQ(run_sheaf(scratch, "report").exit_code, 2);
}

}  // namespace
}  // namespace sheaf

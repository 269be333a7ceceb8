// Values of every type through the program, as JSON lines and as Parquet.
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;

class TypedValues : public testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < 40; ++i)
      lines += json{{"n", i}, {"t", "Tea " + std::to_string(i) + " of 1 March 2026, organic"}}.dump() + "\n";
    scratch_.write("corpus.jsonl", lines);
    scratch_.write("schema.yaml",
                   "categories:\n"
                   "  Tea:\n"
                   "    - {name: Organic, type: boolean}\n"
                   "    - {name: Bags, type: integer, unit: bags}\n"
                   "    - {name: Picked, type: date}\n"
                   "    - {name: Code, type: pattern, pattern: '[^ ]{1,2}.*'}\n");
    scratch_.write(
        "job.yaml",
        "model: {path: " + test::make_tiny_model(scratch_) +
            ", chat: plain}\ninput: {path: " + scratch_.path("corpus.jsonl") +
            ", id: n, document: [t]}\ntask: {kind: extract, schema: " + scratch_.path("schema.yaml") +
            "}\nmethod: {name: hpd, documents: 3, max_value_tokens: 12, temperature: 1}\n"
            "engine: {device: cpu}\noutput: {path: " +
            scratch_.path("out") + "}\n");
  }

  Ran run(const std::string& more = "") {
    return run_sheaf(scratch_, "run " + scratch_.path("job.yaml") + " " + more);
  }

  TempFolder scratch_;
  std::string err_;  ///< of the last score
};

TEST_F(TypedValues, HaveTheTypesOfTheSchema) {
  const Ran ran = run();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  std::set<std::string> organic;
  int codes = 0;
  const std::regex date(R"(\d{4}-\d\d-\d\d)");
  for (const json& row : read_json_lines(read_text(scratch_.path("out/rows-00000.jsonl")))) {
    const json& values = row["values"];
    organic.insert(values["Organic"].dump());
    EXPECT_TRUE(values["Organic"].is_null() || values["Organic"].is_boolean()) << row;
    EXPECT_FALSE(row.contains("notes") && row["notes"].contains("Organic"))
        << "decoded among true, false and null: " << row;
    EXPECT_TRUE(values["Bags"].is_null() || values["Bags"].is_number_integer()) << row;
    EXPECT_TRUE(values["Picked"].is_null() || std::regex_match(values["Picked"].get<std::string>(), date))
        << row;
    codes += !values["Code"].is_null();
    EXPECT_TRUE(values["Code"].is_null() || !values["Code"].get<std::string>().starts_with(' ')) << row;
  }
  EXPECT_GT(codes, 0);
  EXPECT_TRUE(organic.contains("true") || organic.contains("false"));
}

TEST_F(TypedValues, SimplePatternsConstrainDecoding) {
  scratch_.write("schema.yaml",
                 "categories:\n  Tea: [{name: Lot, type: pattern, pattern: '[A-Z]{2}-\\d{2}'}]\n");
  const Ran ran = run();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  int lots = 0;
  const std::regex lot("[A-Z]{2}-[0-9]{2}");
  for (const json& row : read_json_lines(read_text(scratch_.path("out/rows-00000.jsonl")))) {
    const json& value = row["values"]["Lot"];
    EXPECT_FALSE(row.contains("notes")) << "a model of random weights writes nothing else: " << row;
    EXPECT_TRUE(value.is_null() || std::regex_match(value.get<std::string>(), lot)) << row;
    lots += value.is_string();
  }
  EXPECT_GT(lots, 0);
  const Ran verified = run_sheaf(scratch_, "verify " + scratch_.path("job.yaml"));
  EXPECT_NE(verified.out.find("exact match 1.0000"), std::string::npos) << verified.out << verified.err;
}

TEST_F(TypedValues, TableColumnsHaveTheirTypes) {
  ASSERT_EQ(run().exit_code, 0);
  ASSERT_EQ(run("--set output.format=parquet --set output.path=" + scratch_.path("table")).exit_code, 0);
  ASSERT_EQ(run("--set output.format=arrow --set output.path=" + scratch_.path("arrow")).exit_code, 0);
  const std::string read =
      "PYTHONPATH=build/deps/pyarrow python3 -c 'import sys, json, pyarrow as a, pyarrow.parquet as p; t = "
      "p.read_table(sys.argv[1]); assert a.ipc.open_file(sys.argv[2]).read_all().equals(t); "
      "print(json.dumps({f.name: str(f.type) for f in t.schema})); [print(json.dumps(r, default=str)) for r "
      "in "
      "t.select([\"Organic\", \"Bags\", \"Picked\", \"Code\"]).to_pylist()]' " +
      scratch_.path("table/rows-00000.parquet") + " " + scratch_.path("arrow/rows-00000.arrow") + " >" +
      scratch_.path("table.txt");
  ASSERT_EQ(std::system(read.c_str()), 0);
  const std::vector<json> lines = read_json_lines(read_text(scratch_.path("table.txt")));
  EXPECT_EQ(lines[0]["Organic"], "bool");
  EXPECT_EQ(lines[0]["Bags"], "int64");
  EXPECT_EQ(lines[0]["Picked"], "date32[day]");
  const std::vector<json> rows = read_json_lines(read_text(scratch_.path("out/rows-00000.jsonl")));
  ASSERT_EQ(lines.size(), rows.size() + 1);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(lines[i + 1], rows[i]["values"]) << i;
  const std::string show = " --sample 100 --json";
  const auto shown = [&](const std::string& folder) {
    return run_sheaf(scratch_, "show " + scratch_.path(folder) + show).out;
  };
  EXPECT_EQ(shown("table"), shown("out")) << "rows are read back alike";
  EXPECT_EQ(shown("arrow"), shown("out"));
  const std::string inspected =
      run_sheaf(scratch_, "inspect --json " + scratch_.path("arrow/rows-00000.arrow")).out;
  EXPECT_EQ(json::parse(inspected)["corpus"]["format"], "arrow") << inspected;
}

TEST_F(TypedValues, WrongPatternsAreRefusedWithTheSchema) {
  for (const auto& [definition, message] : std::map<std::string, std::string>{
           {"type: pattern", "add the key pattern"},
           {"type: text, pattern: a", "set type: pattern or remove it"},
           {"type: pattern, pattern: '(a'", "character 3: the closing parenthesis is missing"},
           {"type: pattern, pattern: '(?=a)'", "only groups"}}) {
    scratch_.write("schema.yaml", "categories: {Tea: [{name: Code, " + definition + "}]}\n");
    const Ran ran = run();
    EXPECT_EQ(ran.exit_code, 2) << definition;
    EXPECT_NE(ran.err.find("schema.yaml:1: attribute \"Code\""), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
  }
}

TEST_F(TypedValues, OptionsOfOtherTypesThanEnumAreRefused) {
  scratch_.write("schema.yaml", "categories: {Tea: [{name: Organic, type: boolean, options: [maybe]}]}\n");
  const Ran ran = run();
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("has options but is not an enum"), std::string::npos) << ran.err;
}

TEST_F(TypedValues, OfARunAreScoredByTypeWithTheSchemaThatTheRunHad) {
  ASSERT_EQ(run("--limit 3").exit_code, 0);
  scratch_.write("gold.jsonl",
                 R"({"id": 0, "gold": {"Organic": true, "Bags": null, "Picked": "2026-03-01", "Code": null}})"
                 "\n");
  const std::string asked = "score --metric attributes --resamples 0 --json --skip-missing --gold " +
                            scratch_.path("gold.jsonl") + " --pred " + scratch_.path("out");
  const Ran scored = run_sheaf(scratch_, asked);
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const json types = json::parse(scored.out)["types"];
  EXPECT_EQ(types["boolean"]["values"], 1) << types;
  EXPECT_EQ(types["date"]["values"], 1);
  EXPECT_EQ(types["pattern"]["values"], 0);
  scratch_.write("schema.yaml", "categories: {Tea: [{name: Organic}]}\n");
  const Ran changed = run_sheaf(scratch_, asked);
  ASSERT_EQ(changed.exit_code, 0) << changed.err;
  EXPECT_FALSE(json::parse(changed.out).contains("types"));
  EXPECT_NE(changed.err.find("gold values are compared as text: "), std::string::npos) << changed.err;
  EXPECT_NE(changed.err.find("the schema changed since"), std::string::npos) << changed.err;
  EXPECT_NE(changed.err.find("--schema"), std::string::npos) << changed.err;
}

TEST_F(TypedValues, GoldIsReadByTheTypeAndLocaleOfTheRun) {
  ASSERT_EQ(run("--limit 3").exit_code, 0);
  // Rows of another hand in the run's folder: what counts is how gold is compared with them.
  const auto rows = [&](const std::string& locale) {
    ASSERT_EQ(run("--limit 1 --restart --set input.locale=" + locale).exit_code, 0);
    const std::string path = scratch_.path("out/rows-00000.jsonl");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    scratch_.write("out/rows-00000.jsonl",
                   R"({"id": 0, "category": "Tea", "values": {"Organic": true, "Bags": 1200, )"
                   R"("Picked": "2026-03-04", "Code": "ab"}})"
                   "\n");
  };
  const auto right = [&](const std::string& gold) {
    scratch_.write("gold.jsonl", R"({"id": 0, "gold": )" + gold + "}\n");
    const Ran ran = run_sheaf(scratch_, "score --metric attributes --resamples 0 --json --gold " +
                                            scratch_.path("gold.jsonl") + " --pred " + scratch_.path("out"));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    err_ = ran.err;
    return json::parse(ran.out).at("vc").get<int>();
  };
  rows("de-DE");
  EXPECT_EQ(right(R"({"Organic": "ja", "Bags": "1.200", "Picked": "4. März 2026", "Code": "ab"})"), 4);
  EXPECT_EQ(right(R"({"Organic": "TRUE", "Bags": 1200.0, "Picked": "04/03/2026"})"), 3);
  EXPECT_EQ(err_.find("compared as text"), std::string::npos) << err_;
  rows("en-US");
  EXPECT_EQ(right(R"({"Organic": "yes", "Bags": "1,200 bags", "Picked": ["03/04/2026", "n/a"]})"), 3);
  EXPECT_EQ(right(R"({"Organic": "perhaps", "Bags": "many", "Picked": "2026-03-04"})"), 1);
  EXPECT_NE(err_.find("2 gold values that the type of their attribute does not hold, compared as text: "),
            std::string::npos)
      << err_;
}

TEST_F(TypedValues, AreFoundByShowInOtherSpellings) {
  ASSERT_EQ(run().exit_code, 0);
  std::map<std::string, int64_t> counts;
  for (const json& row : read_json_lines(read_text(scratch_.path("out/rows-00000.jsonl"))))
    ++counts[row["values"]["Organic"].dump()];
  for (const auto& [word, value] : {std::pair("nein", "false"), {"TRUE", "true"}, {"null", "null"}}) {
    const Ran ran =
        run_sheaf(scratch_, "show " + scratch_.path("out") + " --sample 100 --json --where Organic=" + word);
    EXPECT_EQ(static_cast<int64_t>(read_json_lines(ran.out).size()), counts[value]) << word << ran.err;
  }
}

TEST_F(TypedValues, ARunThatIsRefusedHasItsLabelsInTheMetrics) {
  const std::string prom = scratch_.path("x.prom");
  ASSERT_EQ(
      run("--quiet --require-reuse 90% --reuse " + scratch_.path("nowhere") + " --metrics " + prom).exit_code,
      2);
  const std::string text = read_text(prom);
  EXPECT_NE(
      text.find("job_file=\"" + scratch_.path("job.yaml") + "\",output=\"" + scratch_.path("out") + "\""),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace sheaf

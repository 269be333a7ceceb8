// What a person sees of values: rows beside their documents, and what the report says of each attribute.
#include <gtest/gtest.h>
#include <map>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;

class Show : public testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < 20; ++i)
      lines += json{{"sku", "s" + std::to_string(i)},
                    {"kind", i % 2 ? "Tea" : "Cup"},
                    {"title", i % 2 ? "Leaf tea number " + std::to_string(i) : "A blue cup, large"}}
                   .dump() +
               "\n" + (i == 4 ? "{broken\n" : "");
    scratch_.write("corpus.jsonl", lines);
    // What is one of few allowed values never is cut, and text of a random model hardly ever ends.
    scratch_.write("schema.yaml",
                   "categories:\n"
                   "  Tea:\n"
                   "    - {name: Leaf, type: enum, options: [leaf, powder]}\n"
                   "    - {name: Origin, type: text}\n"
                   "  Cup:\n"
                   "    - {name: Colour, type: enum, options: [blue]}\n");
    scratch_.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch_) +
                                   ", chat: plain}\ninput: {path: " + scratch_.path("corpus.jsonl") +
                                   ", id: sku, category: kind, document: [title]}\n"
                                   "task: {kind: extract, schema: " +
                                   scratch_.path("schema.yaml") +
                                   "}\nmethod: {name: hpd, documents: 3, max_value_tokens: 6}\n"
                                   "engine: {device: cpu, window: 8}\noutput: {path: " +
                                   scratch_.path("out") + "}\n");
  }

  void run(const std::string& more = "") {
    const Ran ran = run_sheaf(scratch_, "run " + scratch_.path("job.yaml") + " " + more);
    ASSERT_EQ(ran.exit_code, 1) << ran.err;
  }
  std::vector<json> rows(const std::string& folder = "out") const {
    return read_json_lines(read_text(scratch_.path(folder + "/rows-00000.jsonl")));
  }
  json report(const std::string& folder = "out") const {
    return json::parse(read_text(scratch_.path(folder + "/report.json")));
  }
  Ran show(const std::string& more = "") {
    return run_sheaf(scratch_, "show " + scratch_.path("out") + " " + more);
  }
  /// The run as a kill would leave it after `groups` of its journal.
  void unfinish(int groups) {
    for (const char* name : {"_SUCCESS", "manifest.json", "report.json", "report.html"})
      std::filesystem::remove(scratch_.path(std::string("out/") + name));
    for (const char* name : {"rows-00000.jsonl", "rejects.jsonl"})
      if (std::filesystem::exists(scratch_.path(std::string("out/") + name)))
        std::filesystem::rename(scratch_.path(std::string("out/") + name),
                                scratch_.path(std::string("out/") + name + ".part"));
    const std::string journal = read_text(scratch_.path("out/journal"));
    size_t end = 0;
    for (int i = 0; i <= groups; ++i) end = journal.find('\n', end) + 1;
    scratch_.write("out/journal", journal.substr(0, end));
  }
  static bool is_cut(const json& row, const char* attribute) {
    return row.contains("notes") && row["notes"].value(attribute, "") == "cut at the length limit";
  }

  TempFolder scratch_;
};

TEST_F(Show, PutsRowsBesideTheirDocuments) {
  run();
  std::map<std::string, json> by_id;
  for (const json& row : rows()) by_id[row["id"]] = row;
  const Ran all = show("--sample 100 --json");
  ASSERT_EQ(all.exit_code, 0) << all.err;
  const std::vector<json> shown = read_json_lines(all.out);
  ASSERT_EQ(shown.size(), by_id.size());
  for (const json& row : shown) {
    const int number = std::stoi(row["id"].get<std::string>().substr(1));
    EXPECT_EQ(row["document"],
              number % 2 ? "Leaf tea number " + std::to_string(number) : "A blue cup, large");
    const json& values = by_id.at(row["id"])["values"];
    EXPECT_EQ(row["values"].size(), values.size());
    for (const auto& [name, value] : values.items()) EXPECT_EQ(row["values"][name], value) << name;
  }
  const Ran some = show("--sample 2 --category Tea");
  ASSERT_EQ(some.exit_code, 0) << some.err;
  EXPECT_NE(some.err.find("2 of 10 rows"), std::string::npos) << some.err;
  EXPECT_NE(some.out.find("Leaf tea number"), std::string::npos) << some.out;
  EXPECT_NE(some.out.find("Origin: "), std::string::npos) << some.out;
  EXPECT_EQ(some.out, show("--sample 2 --category Tea").out) << "the same rows each time";
  EXPECT_NE(some.out, show("--sample 2 --category Tea --seed 9").out);
}

TEST_F(Show, FiltersRowsByValue) {
  run("--set method.cut_values=null");
  std::map<std::string, int> expected;
  for (const json& row : rows()) {
    if (row["category"] == "Tea" && row["values"]["Origin"].is_null()) ++expected["Origin=null"];
    if (row["category"] == "Tea" && row["values"]["Leaf"] == "leaf") ++expected["Leaf=leaf"];
  }
  for (const char* where : {"Origin=null", "Leaf=leaf"}) {
    const Ran ran = show(std::string("--sample 100 --json --where ") + where);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(static_cast<int>(read_json_lines(ran.out).size()), expected[where]) << where;
  }
  EXPECT_GT(expected["Origin=null"], 0);
}

TEST_F(Show, MistakesAreNamed) {
  run();
  const std::map<std::string, std::string> mistakes = {
      {"--where Orign=null", "the schema has no attribute \"Orign\"; did you mean \"Origin\"?"},
      {"--where Origin", "write it as attribute=value"},
      {"--category Teas", "the schema has no category \"Teas\"; did you mean \"Tea\"?"},
      {"--sample 0", "--sample"}};
  for (const auto& [options, message] : mistakes) {
    const Ran ran = show(options);
    EXPECT_EQ(ran.exit_code, 2) << options;
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
  }
  scratch_.write("corpus.jsonl", "{}\n");
  const Ran changed = show();
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_NE(changed.err.find("changed since"), std::string::npos) << changed.err;
}

TEST_F(Show, CutValuesAreShownAsKeptOrNull) {
  run();
  run("--set method.cut_values=null --set output.path=" + scratch_.path("null"));
  int cut = 0, kept = 0;
  const auto before = rows(), after = rows("null");
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    for (const auto& [name, value] : before[i]["values"].items()) {
      if (!is_cut(before[i], name.c_str())) {
        EXPECT_EQ(after[i]["values"][name], value);
        continue;
      }
      ++cut;
      kept += !value.is_null();
      EXPECT_TRUE(after[i]["values"][name].is_null());
      EXPECT_TRUE(is_cut(after[i], name.c_str()));
    }
  }
  EXPECT_GT(kept, 0) << "of " << cut;
  const Ran wrong = run_sheaf(scratch_, "run " + scratch_.path("job.yaml") + " --set method.cut_values=drop");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("method.cut_values"), std::string::npos) << wrong.err;
}

TEST_F(Show, TheReportCountsValuesPerAttribute) {
  run();
  const json whole = report();
  std::map<std::string, json> attributes;
  for (const json& category : whole["values"])
    for (const json& attribute : category["attributes"]) attributes[attribute["name"]] = attribute;
  int cut = 0, blue = 0, leaf = 0;
  std::map<std::string, int> leaves;
  for (const json& row : rows()) {
    cut += is_cut(row, "Origin");
    blue += row["category"] == "Cup" && row["values"]["Colour"] == "blue";
    if (row["category"] != "Tea" || row["values"]["Leaf"].is_null()) continue;
    ++leaves[row["values"]["Leaf"]];
    leaf += row["values"]["Leaf"] == "leaf";
  }
  EXPECT_EQ(attributes["Origin"]["cut"], cut);
  EXPECT_GT(cut, 0);
  EXPECT_EQ(attributes["Colour"]["literal"], blue) << "every cup is blue in its text";
  EXPECT_EQ(attributes["Leaf"]["literal"], leaf) << "no tea says powder";
  for (const json& common : attributes["Leaf"]["common"])
    EXPECT_EQ(common["rows"], leaves[common["value"]]) << common;
  EXPECT_EQ(attributes["Leaf"]["common"].size(), leaves.size());
  // Rows to look at, the same however the run came about.
  ASSERT_EQ(whole["sample"].size(), 8u);
  for (const json& row : whole["sample"]) {
    EXPECT_FALSE(row["text"].get<std::string>().empty());
    EXPECT_EQ(row["values"].size(), row["category"] == "Tea" ? 2u : 1u);
  }
  std::string folders;
  for (const char* shard : {"0/2", "1/2"}) {
    const std::string folder = scratch_.path(std::string("s") + shard[0]);
    folders += " " + folder;
    run_sheaf(scratch_, "run " + scratch_.path("job.yaml") + " --quiet --shard " + shard +
                            " --set output.path=" + folder);
  }
  ASSERT_EQ(run_sheaf(scratch_, "merge " + scratch_.path("all") + folders).exit_code, 1);
  EXPECT_EQ(report("all")["sample"], whole["sample"]);
  EXPECT_EQ(report("all")["values"], whole["values"]);
  const std::string page = read_text(scratch_.path("out/report.html"));
  for (const char* words : {"literally in the document", "of the values are “",
                            "A sample of rows with their text", "A blue cup, large", " cut"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
}

TEST_F(Show, AnUnfinishedRunIsShownAsFarAsItCame) {
  run();
  const std::vector<json> all = rows();
  unfinish(1);
  const Ran ran = show("--sample 50 --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::vector<json> shown = read_json_lines(ran.out);
  ASSERT_GT(shown.size(), 0u);
  ASSERT_LT(shown.size(), all.size());
  for (size_t i = 0; i < shown.size(); ++i) {
    EXPECT_EQ(shown[i]["id"], all[i]["id"]);
    EXPECT_FALSE(shown[i]["document"].get<std::string>().empty());
  }
  const Ran text = show();
  EXPECT_NE(text.err.find(" that the run has so far; it is not finished"), std::string::npos) << text.err;
  unfinish(0);
  EXPECT_NE(show().err.find("the run there has no rows yet"), std::string::npos) << show().err;
  const Ran resumed = run_sheaf(scratch_, "run " + scratch_.path("job.yaml"));
  EXPECT_EQ(resumed.exit_code, 1) << resumed.err;
  EXPECT_EQ(rows(), all);
}

}  // namespace
}  // namespace sheaf

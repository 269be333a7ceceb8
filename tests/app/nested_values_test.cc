// Nested values through the program: objects and lists of objects, decoded in two rounds.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <regex>

#include "core/task/value_path.h"
#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;

constexpr const char* kSchema = R"(categories:
  Tea:
    - {name: Brand}
    - name: box
      type: object
      attributes:
        - {name: kind, type: enum, options: [tin, carton]}
        - {name: note}
    - name: variants
      type: list
      max_entries: 3
      attributes:
        - {name: size}
        - {name: organic, type: boolean}
        - {name: words, type: list}
        - name: offers
          type: list
          max_entries: 2
          attributes:
            - {name: shop}
            - {name: open, type: boolean}
)";

class NestedValues : public testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < 24; ++i)
      lines +=
          json{{"n", i}, {"t", "Tea " + std::to_string(i) + " in a tin, S or M; large on Friday"}}.dump() +
          "\n";
    scratch_.write("corpus.jsonl", lines);
    scratch_.write("schema.yaml", kSchema);
  }

  /// `output`: further keys of the section.
  std::string job(const std::string& method, const std::string& output = "") {
    return scratch_.write(
        "job.yaml",
        "model: {path: " + model_ + ", chat: plain}\ninput: {path: " + scratch_.path("corpus.jsonl") +
            ", id: n, document: [t]}\ntask: {kind: extract, schema: " + scratch_.path("schema.yaml") +
            "}\nmethod: {" + method +
            ", max_value_tokens: 12}\nengine: {device: cpu, window: 8}\noutput: {path: " +
            scratch_.path("out") + output + "}\n");
  }

  std::vector<json> rows(const std::string& job_path, const std::string& more = "") {
    const Ran ran = run_sheaf(scratch_, "run " + job_path + " --restart " + more);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return read_json_lines(read_text(scratch_.path("out/rows-00000.jsonl")));
  }

  json verify(const std::string& job_path, const std::string& more = "") {
    const Ran ran = run_sheaf(scratch_, "verify " + job_path + " --json " + more);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return json::parse(ran.out);
  }

  TempFolder scratch_;
  const std::string model_ = test::make_tiny_model(scratch_);
};

/// Text of a random model: what it writes of a list is taken for entries.
const std::string kHpd = "name: hpd, documents: 4, temperature: 1, seed: 5";

TEST_F(NestedValues, RowsHaveTheShapeOfTheSchema) {
  size_t variants = 0, offers = 0, notes = 0;
  for (const json& row : rows(job(kHpd, ", confidence: true, spans: true, raw: true"))) {
    const json& values = row["values"];
    ASSERT_EQ(values.size(), 3u);
    ASSERT_EQ(values["box"].size(), 2u);
    EXPECT_TRUE(values["box"]["kind"].is_null() || values["box"]["kind"] == "tin" ||
                values["box"]["kind"] == "carton");
    if (values["variants"].is_null()) continue;
    ASSERT_TRUE(values["variants"].is_array());
    EXPECT_LE(values["variants"].size(), 3u);
    for (const json& entry : values["variants"]) {
      ++variants;
      EXPECT_EQ(entry.size(), 4u);
      EXPECT_TRUE(entry["organic"].is_boolean() || entry["organic"].is_null());
      if (!entry["offers"].is_array()) continue;
      EXPECT_LE(entry["offers"].size(), 2u);
      offers += entry["offers"].size();
    }
    // What is said of values goes by their paths.
    for (const char* about : {"notes", "confidence", "spans", "raw"}) {
      const json all = row.value(about, json::object());
      for (const auto& [path, said] : all.items()) {
        const auto steps = read_path(path);
        ASSERT_TRUE(steps) << path;
        json at = values;
        for (const PathStep& step : *steps) {
          at = at.at(step.name);
          if (step.entry) at = at.at(static_cast<size_t>(*step.entry));
        }
        notes += steps->size() > 2;
      }
    }
    for (size_t i = 0; i < values["variants"].size(); ++i)
      EXPECT_TRUE(row["confidence"].contains("variants[" + std::to_string(i) + "].organic")) << row;
  }
  EXPECT_GT(variants, 20u);
  EXPECT_GT(offers, 10u);
  EXPECT_GT(notes, 10u);
}

TEST_F(NestedValues, EqualThoseOfSeparatePromptsInEveryRound) {
  const std::vector<json> packed = rows(job(kHpd));
  for (const char* other : {"name: hpd, documents: 1, temperature: 1, seed: 5",
                            "name: hpd, documents: 4, questions: 2, temperature: 1, seed: 5",
                            "name: separate, temperature: 1, seed: 5"})
    EXPECT_EQ(rows(job(other)), packed) << other;
  const json checked = verify(job(kHpd));
  const int records = checked["records"].get<int>();
  EXPECT_GT(records, 10);
  EXPECT_GT(checked["answers"].get<int>(), records * 4 + 50) << "no answers about entries were compared";
  EXPECT_EQ(checked["exact_match"], 1.0) << checked["differences"].dump(2);
  // Without the list of attributes each question says what it means.
  const json alone = verify(job(kHpd), "--set task.list_attributes=false");
  EXPECT_GT(alone["answers"].get<int>(), records * 4);
  EXPECT_EQ(alone["exact_match"], 1.0) << alone["differences"].dump(2);
}

TEST_F(NestedValues, AreReusedWithAllTheirEntries) {
  const std::vector<json> first = rows(job("name: hpd, documents: 4"));
  const json asked = json::parse(read_text(scratch_.path("out/report.json")))["answers"];
  EXPECT_EQ(asked, verify(job("name: hpd, documents: 4"), "--limit 24")["answers"]);
  std::filesystem::rename(scratch_.path("out"), scratch_.path("before"));
  const std::string again = job("name: hpd, documents: 2");
  EXPECT_EQ(rows(again, "--reuse " + scratch_.path("before")), first);
  const json report = json::parse(read_text(scratch_.path("out/report.json")));
  EXPECT_EQ(report["reused"], asked) << "answers are counted alike";
}

TEST_F(NestedValues, AStandardPromptHasThemAsOneObject) {
  const std::string standard = job("name: standard");
  for (const json& row : rows(standard)) {
    ASSERT_EQ(row["values"].size(), 3u);
    for (const char* name : {"box", "variants"})
      EXPECT_TRUE(row["values"][name].is_null() || row["values"][name].is_structured());
  }
  const Ran planned = run_sheaf(scratch_, "plan " + standard);
  EXPECT_TRUE(
      std::regex_search(planned.out, std::regex("objects  a model that does not end an object writes up "
                                                "to \\d+ tokens: method.max_value_tokens for each")))
      << planned.out << planned.err;
  const Ran narrow = run_sheaf(scratch_, "plan " + standard + " --set model.context=200");
  EXPECT_NE(narrow.err.find("lower max_entries in the schema or method.max_value_tokens"), std::string::npos)
      << narrow.err << narrow.out;
  const Ran prompt = run_sheaf(scratch_, "plan " + standard + " --prompt 1");
  EXPECT_NE(prompt.out.find("    - variants (a list of objects)\n      - size\n"), std::string::npos)
      << prompt.out;
}

TEST_F(NestedValues, PlanAndEstimateCountBothRounds) {
  const Ran text = run_sheaf(scratch_, "plan " + job(kHpd));
  EXPECT_TRUE(std::regex_search(
      text.out,
      std::regex("rounds   3: \\d+ tokens for values and lists, then \\d+ for \\d+ answers about entries")))
      << text.out << text.err;
  const json plan = json::parse(run_sheaf(scratch_, "plan " + job(kHpd) + " --json").out);
  EXPECT_EQ(plan["entries"]["rounds"], 2) << "of a list in a list";
  // 24 records: 3 entries with 3 fields, and with 2 entries of one field each.
  EXPECT_EQ(plan["entries"]["answers"], 24 * 3 * (3 + 2 * 1));
  EXPECT_GT(plan["entries"]["tokens_computed"].get<int>(), 24 * 3 * 5);
  const Ran prompt = run_sheaf(scratch_, "plan " + job(kHpd) + " --prompt 1");
  EXPECT_NE(prompt.out.find("\"variants.size\":"), std::string::npos) << prompt.out;
  EXPECT_NE(prompt.out.find("\"variants.organic\":"), std::string::npos) << prompt.out;
}

TEST_F(NestedValues, WhatCannotBeDoneIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"name: hpd, stacking: joint",
       "schema.yaml:9: attribute \"variants\" has attributes of its own, which are asked for once its "
       "entries "
       "are known; set method.stacking: isolated"},
      {"name: hpd, keys: marker", "set method.keys: name"},
      {"name: hpd, samples: 3, temperature: 1", "set method.samples: 1"},
      {"name: seqbatch", "use hpd, separate or standard"},
  };
  for (const auto& [method, message] : cases) {
    const Ran ran = run_sheaf(scratch_, "run " + job(method));
    EXPECT_EQ(ran.exit_code, 2) << method;
    EXPECT_NE(ran.err.find(message), std::string::npos) << method << ": " << ran.err;
  }
  // Objects alone can be decoded one after the other.
  scratch_.write(
      "schema.yaml",
      "categories:\n  Tea:\n    - {name: box, type: object, attributes: [{name: kind}, {name: note}]}\n");
  EXPECT_EQ(rows(job("name: hpd, values: positional")).size(), 24u);
  scratch_.write("schema.yaml",
                 "categories:\n  Tea:\n    - {name: a, type: list, max_entries: 100, attributes: [{name: b}, "
                 "{name: c, type: list, max_entries: 100, attributes: [{name: d}]}]}\n");
  const Ran many = run_sheaf(scratch_, "run " + job("name: hpd") + " --restart");
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_NE(many.err.find("could come to 10000 entries inside of each other, more than 2000"),
            std::string::npos)
      << many.err;
}

TEST_F(NestedValues, ShowFindsThemByTheirPaths) {
  std::map<std::string, size_t> expected;
  for (const json& row : rows(job(kHpd))) {
    const json& variants = row["values"]["variants"];
    if (!variants.is_array()) continue;
    const auto is_null = [](const json& entry) { return entry["organic"].is_null(); };
    expected["variants[].organic=null"] += std::ranges::any_of(variants, is_null);
    expected["variants.organic=null"] += std::ranges::any_of(variants, is_null);
    expected["variants[1].organic=true"] += variants.size() > 1 && variants[1]["organic"] == true;
    expected["box.kind=tin"] += row["values"]["box"]["kind"] == "tin";
  }
  size_t all = 0;
  for (const auto& [where, count] : expected) {
    const Ran shown =
        run_sheaf(scratch_, "show " + scratch_.path("out") + " --json --sample 100 --where '" + where + "'");
    EXPECT_EQ(read_json_lines(shown.out).size(), count) << where << ": " << shown.err;
    all += count;
  }
  EXPECT_GT(all, 0u);
  const std::pair<const char*, const char*> wrong[] = {
      {"variants=null", "\"variants\" holds values of its own; name one of them, such as variants[].size"},
      {"variants[0]=S", "such as variants[0].size"},
      {"variants[0].sise=S", "the schema has no attribute \"variants[0].sise\""}};
  for (const auto& [where, message] : wrong) {
    const Ran ran =
        run_sheaf(scratch_, "show " + scratch_.path("out") + " --where '" + std::string(where) + "'");
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
  }
}

TEST_F(NestedValues, ShowTakesAPathForANameInTheCategoryThatHasIt) {
  scratch_.write(
      "schema.yaml",
      "categories:\n"
      "  Tea:\n"
      "    - {name: box, type: object, attributes: [{name: kind, type: enum, options: [tin, jar]}]}\n"
      "  Cup:\n"
      "    - {name: box.kind, type: enum, options: [tin, jar]}\n");
  std::string lines;
  for (int i = 0; i < 24; ++i)
    lines += json{{"n", i}, {"kind", i % 2 ? "Tea" : "Cup"}, {"t", "A tin or a jar"}}.dump() + "\n";
  scratch_.write("corpus.jsonl", lines);
  std::map<std::string, size_t> expected;
  for (const json& row : rows(job(kHpd), "--set input.category=kind")) {
    const json& values = row["values"];
    const json& kind = row["category"] == "Tea" ? values["box"]["kind"] : values["box.kind"];
    ++expected[(kind.is_null() ? "null" : kind.get<std::string>()) + " --category " +
               row["category"].get<std::string>()];
    ++expected[kind.is_null() ? "null" : kind.get<std::string>()];
  }
  EXPECT_GE(expected.size(), 4u) << "both categories have values";
  for (const auto& [where, count] : expected) {
    const Ran shown = run_sheaf(
        scratch_, "show " + scratch_.path("out") + " --json --sample 100 --where box.kind=" + where);
    EXPECT_EQ(read_json_lines(shown.out).size(), count) << where << ": " << shown.err;
  }
}

TEST_F(NestedValues, GoldOfAnotherKindIsRefusedWithItsPlace) {
  scratch_.write("gold.jsonl",
                 "{\"id\": 0, \"gold\": {\"Brand\": \"Oak\"}}\n{\"id\": 1, \"gold\": "
                 "{\"variants\": [\"S\"]}}\n");
  rows(job(kHpd));
  const std::string message =
      "gold.jsonl:2: \"gold\": variants must be a list of objects, not a list of texts";
  for (const std::string& command :
       {"score --metric attributes --gold " + scratch_.path("gold.jsonl") + " --pred " + scratch_.path("out"),
        "train-data " + job(kHpd) + " " + scratch_.path("train.parquet") + " --gold " +
            scratch_.path("gold.jsonl")}) {
    const Ran ran = run_sheaf(scratch_, command);
    EXPECT_EQ(ran.exit_code, 2) << command;
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
  }
}

TEST_F(NestedValues, ShowIndentsThem) {
  rows(job(kHpd));
  const Ran shown = run_sheaf(scratch_, "show " + scratch_.path("out"));
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_TRUE(std::regex_search(shown.out, std::regex("box:[^\\n]*\\n[^\\n]*  kind: "))) << shown.out;
  EXPECT_TRUE(std::regex_search(shown.out, std::regex("  - size: "))) << shown.out;
  const Ran lines = run_sheaf(scratch_, "show " + scratch_.path("out") + " --json");
  EXPECT_TRUE(json::parse(lines.out.substr(0, lines.out.find('\n')))["values"]["box"].is_object())
      << lines.out;
}

TEST_F(NestedValues, ExamplesShowTheAnswersOfEveryRound) {
  const std::string examples = scratch_.write(
      "examples.jsonl",
      R"({"category": "Tea", "document": "Oak", "gold": {"Brand": "Oak", "box": {"kind": "tin"}, "variants": [)"
      R"({"size": "S", "organic": true, "offers": [{"shop": "A", "open": false}]}, {"size": ["M", "medium"]}]}})"
      "\n");
  const std::string with = " --set model.chat=chatml --set task.examples.path=" + examples;
  const Ran plan = run_sheaf(scratch_, "plan " + job(kHpd) + with + " --prompt 1");
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  std::string shown;
  for (const char* line :
       {"{", "  \"Brand\": \"Oak\",", "  \"box.kind\": \"tin\",", "  \"variants.size\": [\"S\", \"M\"],",
        "  \"variants.size\": \"S\",", "  \"variants.organic\": true,",
        "  \"variants.offers.shop\": [\"A\"],", "  \"variants.offers.shop\": \"A\",",
        "  \"variants.offers.open\": false,", "  \"variants.size\": \"M\"", "}"})
    shown += std::string("\n    ") + line;
  EXPECT_NE(plan.out.find(shown), std::string::npos) << plan.out;
  EXPECT_EQ(verify(job(kHpd), with)["exact_match"], 1.0);
  const Ran whole = run_sheaf(scratch_, "plan " + job("name: standard") + with + " --prompt 1");
  EXPECT_NE(whole.out.find("\"offers\": [{\"shop\": \"A\", \"open\": false}]"), std::string::npos)
      << whole.out;
}

TEST_F(NestedValues, ReviewShowsThemWhole) {
  rows(job(kHpd, ", logprobs: true"));
  const Ran review =
      run_sheaf(scratch_, "review " + scratch_.path("out") + " -o " + scratch_.path("page.html"));
  ASSERT_EQ(review.exit_code, 0) << review.err;
  const std::string page = read_text(scratch_.path("page.html"));
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  ASSERT_GT(begin, open.size()) << "the page holds no data";
  const json data = json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  std::map<std::string, json> items;
  for (const json& item : data["items"]) items[item["attribute"]] = item;
  EXPECT_EQ(items.at("variants")["type"], "entries");
  EXPECT_EQ(items.at("box")["type"], "object");
  EXPECT_EQ(items.at("box")["fields"].size(), 2u);
  EXPECT_FALSE(items.at("box")["sure"].is_null());
  for (const char* name : {"variants", "box"}) {
    const json& item = items.at(name);
    EXPECT_EQ(json::parse(item["spread"].get<std::string>()), json::parse(item["value"].get<std::string>()));
  }
}

TEST(NestedValuesOfAModel, EqualSeparatePrompts) {
  NEED_MODEL();
  const TempFolder scratch;
  scratch.write(
      "corpus.jsonl",
      json{{"id", 1},
           {"text",
            "Oak & Sons olive oil. Bottles: small (250 ml) 6.50 EUR, medium (500 ml) 11 EUR, large "
            "(1 l) 19.90 EUR. Comes in a carton of 30 cm."}}
              .dump() +
          "\n" +
          json{{"id", 2}, {"text", "Linden honey by Bee Farm, sold as jar (9 EUR) or bucket (40 EUR)."}}
              .dump() +
          "\n");
  scratch.write("schema.yaml", R"(categories:
  Food:
    - {name: brand}
    - name: carton
      type: object
      attributes: [{name: width, type: number, unit: cm}]
    - name: variants
      type: list
      description: each size on offer
      attributes:
        - {name: size}
        - {name: price, type: number, unit: EUR}
)");
  const std::string job = scratch.write(
      "job.yaml",
      "model: {path: " SHEAF_SOURCE_DIR "/build/models/smollm2.gguf, adapter: " SHEAF_SOURCE_DIR
      "/configs/adapters/smollm2-extract}\ninput: {path: " +
          scratch.path("corpus.jsonl") +
          ", id: id, document: [text]}\ntask: {kind: extract, schema: " + scratch.path("schema.yaml") +
          "}\nmethod: {name: hpd, documents: 2}\nengine: {device: cpu}\noutput: {path: " +
          scratch.path("out") + "}\n");
  const auto ran = run_sheaf(scratch, "verify " + job + " --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json result = json::parse(ran.out);
  EXPECT_EQ(result["records"], 2);
  EXPECT_GT(result["answers"].get<int>(), 6) << "no entry was found";
  EXPECT_EQ(result["exact_match"], 1.0) << result["differences"].dump(2);
}

}  // namespace
}  // namespace sheaf

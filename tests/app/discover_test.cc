// sheaf discover through the program: what it asks, what it makes of the replies, and what it refuses.
#include <gtest/gtest.h>

#include "core/task/proposed_attributes.h"
#include "io/base/yaml_reader.h"
#include "io/files/job_file.h"
#include "io/jobs/discover_job.h"
#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::run_sheaf;

class DiscoverCommand : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    std::string corpus;
    for (int i = 0; i < 5; ++i)
      corpus +=
          json{{"id", i}, {"kind", i < 4 ? "Tea" : "Desk Lamp"}, {"text", "product " + std::to_string(i)}}
              .dump() +
          "\n";
    scratch_.write("shop.jsonl",
                   corpus + R"({"id": 5, "kind": " ", "text": "x"})" + "\n" + R"({"id": 6})" + "\n");
    scratch_.write(
        "job.yaml",
        "model: {path: " + model_ + ", chat: chatml}\ninput: {path: " + scratch_.path("shop.jsonl") +
            ", id: id, category: kind, document: [text]}\ntask: {kind: extract, schema: not-yet.yaml}\n"
            "engine: {device: cpu, threads: 1}\noutput: {path: " +
            scratch_.path("out") + "}\n");
  }

  Ran discover(const std::string& more = "") const {
    return run_sheaf(scratch_, "discover " + scratch_.path("job.yaml") + " --reply-tokens 16 " + more);
  }

  std::vector<json> requests() const {
    return test::read_json_lines(read_text(scratch_.path("out.discover/requests.jsonl")));
  }

  /// Puts these replies in place of those of the model, which writes noise.
  void reply(const std::vector<std::string>& texts) const {
    std::string rows;
    const std::vector<json> asked = requests();
    for (size_t i = 0; i < texts.size(); ++i)
      rows += json{{"id", asked[i]["custom_id"]}, {"answer", texts[i]}, {"finish", "stop"}}.dump() + "\n";
    scratch_.write("out.discover/run/rows-00000.jsonl", rows);
    auto manifest = nlohmann::ordered_json::parse(read_text(scratch_.path("out.discover/run/manifest.json")));
    for (auto& file : manifest["files"])
      if (file["name"] == "rows-00000.jsonl") file["bytes"] = rows.size();
    scratch_.write("out.discover/run/manifest.json", manifest.dump());
  }

  TempFolder scratch_;
  std::string model_;
};

TEST_F(DiscoverCommand, AsksWithThePapersPromptAboutTheSameSampleEachTime) {
  const Ran ran = discover("--products 3 --together 2");
  EXPECT_EQ(ran.exit_code, 2) << "the model writes noise";
  EXPECT_NE(ran.err.find("has an attribute as <name>"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("--model"), std::string::npos) << ran.err;
  const std::vector<json> asked = requests();
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0]["custom_id"], "Tea 1");
  EXPECT_EQ(asked[1]["custom_id"], "Tea 2");
  EXPECT_EQ(asked[2]["custom_id"], "Desk Lamp 1");
  const std::string text = asked[0]["body"]["messages"][0]["content"];
  EXPECT_NE(text.find("Provide up to 16 attributes"), std::string::npos);
  EXPECT_NE(text.find("<product>\nproduct "), std::string::npos);
  EXPECT_EQ(text.find('{'), std::string::npos) << text;
  discover("--products 3 --together 2");
  EXPECT_EQ(requests(), asked);
  discover("--products 3 --together 2 --seed 5");
  EXPECT_NE(requests(), asked) << "four products, three of them shown";
}

TEST_F(DiscoverCommand, WritesASchemaThatJobsRead) {
  discover();
  reply(
      {"<name>Brand</name><description>Maker, e.g. Oak, Elm</description><name>Weight: "
       "net</name><datatype>numerical"
       "</datatype><value>20 g</value>",
       "no idea"});
  const std::string out = scratch_.path("schema.yaml");
  const Ran ran = discover(out);
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_NE(ran.err.find("1 reply without a readable attribute: \"Desk Lamp 1\""), std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("1 record of the corpus cannot be read"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("1 record of the corpus left out: the category is blank"), std::string::npos)
      << ran.err;
  EXPECT_NE(ran.out.find("2 attributes of 2 categories in " + out), std::string::npos) << ran.out;
  const Schema schema = read_schema(out);
  ASSERT_EQ(schema.categories.size(), 1u);
  EXPECT_EQ(schema.categories[0].name, "Tea");
  EXPECT_EQ(schema.categories[0].attributes[1].name, "Weight: net");
  EXPECT_EQ(schema.categories[0].attributes[1].type, ValueType::number);
  const std::string text = read_text(out);
  EXPECT_NE(text.find("  Tea:  # 4 of 4 products shown"), std::string::npos) << text;
  EXPECT_NE(text.find("# in 1 of 1 reply; none of its examples is in a product"), std::string::npos) << text;
  EXPECT_NE(text.find("  # Desk Lamp: no reply gives an attribute (1 prompt)"), std::string::npos) << text;
  const Ran again = discover(out);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_NE(again.err.find("exists; name another file"), std::string::npos) << again.err;
}

TEST_F(DiscoverCommand, KeepsAtMostSoManyAttributes) {
  discover("--attributes 1");
  reply({"<name>Brand</name><name>Form</name>", "<name>Finish</name>"});
  const Ran ran = discover("--attributes 1 --json");
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  const json out = json::parse(ran.out);
  EXPECT_EQ(out["categories"][0]["attributes"], 1);
  EXPECT_EQ(out["categories"][0]["left_out"], 1);
  EXPECT_NE(out["schema"].get<std::string>().find("# and 1 more"), std::string::npos);
}

TEST_F(DiscoverCommand, RefusesWhatCannotWork) {
  const auto refusal = [&](const std::string& more) {
    const Ran ran = discover(more);
    EXPECT_EQ(ran.exit_code, 2) << more;
    return ran.err;
  };
  EXPECT_NE(refusal("schema.json").find("must end in .yaml"), std::string::npos);
  EXPECT_NE(refusal("--set task.kind=ask --set input.question=text --set input.context=text "
                    "--set input.document=null --set input.category=null --set task.schema=null")
                .find("task.kind ask"),
            std::string::npos);
  EXPECT_NE(refusal("--set input.path=-").find("standard input"), std::string::npos);
  EXPECT_NE(refusal("--set input.category=nothing").find("no column \"nothing\""), std::string::npos);
  const std::string prompt = scratch_.write("prompt.yaml", "request: 'List {product}.'\n");
  EXPECT_NE(refusal("--prompt " + prompt).find("did you mean \"products\""), std::string::npos);
  scratch_.write("prompt.yaml", "request: List them.\n");
  EXPECT_NE(refusal("--prompt " + prompt).find("{products} is missing"), std::string::npos);
}

TEST(DiscoverPrompt, IsTheOneInTheFile) {
  YamlMap map(read_yaml("configs/papers/prompts/hpd-figure-10.yaml"), "");
  std::string text;
  map.text("request", text);
  EXPECT_EQ(text, discover_prompt());
}

TEST(DiscoveredSchema, SurvivesAnyName) {
  const TempFolder folder;
  MergedAttribute odd;
  odd.as = {"a: b # \"c\" 'd' [e]", "x\ty: {z} # \\ \"q\"", true};
  odd.replies = 1;
  odd.others = {"line\nbreak"};
  odd.found = {"- x"};
  MergedAttribute word;
  word.as = {"null", "yes", false};
  const std::string text =
      discovered_schema({{"- *odd: # 1\n", 3, 2, 1, 1, {odd, word}}, {"true", 1, 1, 1, 0, {}}}, "a\nb");
  const Schema schema = read_schema(folder.write("s.yaml", text));
  ASSERT_EQ(schema.categories.size(), 1u) << text;
  EXPECT_EQ(schema.categories[0].name, "- *odd: # 1\n");
  EXPECT_EQ(schema.categories[0].attributes[0].name, odd.as.name);
  EXPECT_EQ(schema.categories[0].attributes[0].description, odd.as.description);
  EXPECT_EQ(schema.categories[0].attributes[1].name, "null");
}

}  // namespace
}  // namespace sheaf

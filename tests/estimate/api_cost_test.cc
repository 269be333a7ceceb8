// What a service would charge: prices from a file, and tokens that are those of whole prompts.
#include "core/estimate/api_cost.h"

#include <gtest/gtest.h>

#include "io/files/api_price_file.h"
#include "tests/app/program.h"
#include "tests/errors.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::run_sheaf;

TEST(ApiCost, IsThatOfTokensInAndOut) {
  const ApiPrice price{"m", "Model", 2, 8, 0.5, "2026-03", "https://example.org"};
  const ApiTokens tokens{1000, 3e6, 1e6};
  EXPECT_DOUBLE_EQ(api_usd(price, tokens), 14);
  const std::string text = api_text({price}, tokens);
  EXPECT_NE(
      text.find("Model: $14.00, $7.00 in batches; $2.00 and $8.00 per million tokens in and out (2026-03, "
                "https://example.org)"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("1,000 requests with 3,000,000 tokens in and 1,000,000 out"), std::string::npos)
      << text;
  const json all = api_json({price}, tokens);
  EXPECT_EQ(all["input_tokens"], 3000000);
  EXPECT_EQ(all["models"][0]["usd_in_batches"], 7);
}

TEST(ApiPrices, OfTheListAreDatedAndHaveASource) {
  const std::vector<ApiPrice> all = read_api_prices("configs/api-prices.yaml", "all");
  ASSERT_FALSE(all.empty());
  for (const ApiPrice& price : all) {
    EXPECT_GT(price.input, 0) << price.name;
    EXPECT_GT(price.output, price.input) << price.name;
    EXPECT_GE(price.as_of.size(), 7u) << price.name;
    EXPECT_TRUE(price.source.starts_with("https://")) << price.name;
  }
  EXPECT_EQ(read_api_prices("configs/api-prices.yaml", "gpt-4.1-mini,gpt-4.1")[1].name, "gpt-4.1");
}

TEST(ApiPrices, MistakesAreRefused) {
  const TempFolder folder;
  const auto trouble = [&](const std::string& text, const std::string& names = "all") {
    return error_of([&] { read_api_prices(folder.write("p.yaml", text), names); });
  };
  const std::string good =
      "apis: {m: {usd_per_million_input: 1, usd_per_million_output: 2, as_of: \"2026-03\", source: here}}";
  EXPECT_EQ(trouble(good), "no error");
  EXPECT_NE(trouble(good, "n").find("has no price of \"n\""), std::string::npos);
  EXPECT_NE(trouble("apis: []").find("must be a map of models"), std::string::npos);
  EXPECT_NE(trouble("apis: {m: {usd_per_million_input: 1}}").find("source"), std::string::npos);
  EXPECT_NE(trouble("apis: {m: {usd_per_million_input: -1}}").find("p.yaml:1"), std::string::npos);
  EXPECT_NE(trouble("prices: {}").find("apis"), std::string::npos);
}

/// A job whose requests are planned, and estimated, whole.
TEST(EstimateCommand, ApiTokensAreThoseOfWholePrompts) {
  const TempFolder scratch;
  const std::string model = test::make_tiny_model(scratch);
  scratch.write("s.yaml", "categories: {Tea: [{name: Brand}, {name: Weight, type: number}]}\n");
  std::string rows;
  for (int i = 0; i < 20; ++i)
    rows += json{{"id", i}, {"text", "tea number " + std::to_string(i)}}.dump() + "\n";
  scratch.write("c.jsonl", rows);
  const std::string job = scratch.write(
      "job.yaml", "model: {path: " + model + ", chat: chatml}\ninput: {path: " + scratch.path("c.jsonl") +
                      ", id: id, document: [text]}\ntask: {kind: extract, schema: " + scratch.path("s.yaml") +
                      "}\nmethod: {name: hpd}\noutput: {path: " + scratch.path("out") + "}\n");
  const auto plan = run_sheaf(scratch, "plan " + job + " --set method.name=standard --json");
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const auto ran = run_sheaf(scratch, "estimate " + job + " --hardware h200 --api gpt-4.1 --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json api = json::parse(ran.out)["api"];
  EXPECT_EQ(api["requests"], 20);
  const json planned = json::parse(plan.out);
  const int64_t answers = planned["answers"], assumed = planned["assumed_answer_tokens"];
  EXPECT_EQ(api["input_tokens"], planned["tokens_computed"].get<int64_t>() - answers * (assumed - 1));
  EXPECT_GT(api["output_tokens"], 20 * 10);
  EXPECT_EQ(api["models"].size(), 1u);
  const auto table = run_sheaf(scratch, "estimate " + job + " --api all");
  EXPECT_NE(table.out.find("api       OpenAI GPT-4.1: $"), std::string::npos) << table.out << table.err;
  const auto wrong = run_sheaf(scratch, "estimate " + job + " --api gpt-5.1");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("has no price of \"gpt-5.1\""), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace sheaf

// The shipped adapter on texts that it was not trained on.
#include <gtest/gtest.h>
#include <set>

#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::run_sheaf;

TEST(Run, TheShippedAdapterAnswersEveryTypeOfValue) {
  NEED_MODEL();
  const TempFolder scratch;
  // Together, these have several gold values of every type.
  const std::set<std::string> categories = {"Chocolate", "Cookware", "Event"};
  const std::string shops = "datasets/shops/products.jsonl";
  std::string corpus;
  for (const json& product : read_json_lines(read_text(shops)))
    if (categories.contains(product["category"])) corpus += product.dump() + "\n";
  const std::string path = scratch.write("corpus.jsonl", corpus), out = scratch.path("out");
  const Ran ran =
      run_sheaf(scratch, "run configs/shops.yaml --set model.cpu_dtype=int8 --set input.path=" + path +
                             " --set output.path=" + out);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Ran scored =
      run_sheaf(scratch, "score --metric attributes --resamples 0 --json --gold " + path + " --pred " + out);
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const json types = json::parse(scored.out)["types"];
  for (const char* type :
       {"text", "span", "number", "integer", "boolean", "date", "pattern", "enum", "list"}) {
    ASSERT_TRUE(types.contains(type)) << types;
    EXPECT_GE(types[type]["values"], 7) << type;
    EXPECT_GT(types[type]["micro_recall"], 0) << type << " is never answered: " << types[type];
  }
}

}  // namespace
}  // namespace sheaf

#include <gtest/gtest.h>

#include "io/model/model_config.h"
#include "tests/files.h"
#include "tests/model/golden.h"

namespace sheaf {
namespace {

TEST(Rope, TablesOfWellKnownModelsEqualHuggingFace) {
  const TempFolder folder;
  const auto cases = read_golden_json("ropes.json");
  ASSERT_EQ(cases.size(), 7u);
  for (const auto& test : cases) {
    SCOPED_TRACE(test["name"].get<std::string>());
    const ModelConfig config = read_hf_config(folder.write("config.json", test["config"].dump())).config;
    const auto want = floats_of(unhex(test["freqs"]));
    ASSERT_EQ(config.ropes.at(0).freqs.size(), want.size());
    ASSERT_EQ(config.rotary_dim, static_cast<int32_t>(2 * want.size()));
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_FLOAT_EQ(config.ropes[0].freqs[i], want[i]) << "pair " << i;
    EXPECT_FLOAT_EQ(config.ropes[0].scale, test["scale"].get<float>());
  }
}

TEST(Rope, NewSpellingGivesTheSameTable) {
  const TempFolder folder;
  const auto goldens = read_golden_json("ropes.json");
  ASSERT_FALSE(goldens.empty());
  for (const auto& test : goldens) {
    SCOPED_TRACE(test["name"].get<std::string>());
    const ModelConfig old = read_hf_config(folder.write("config.json", test["config"].dump())).config;
    auto config = test["config"];
    auto rope = config.value("rope_scaling", nlohmann::json::object());
    if (rope.contains("type")) rope["rope_type"] = rope["type"];
    rope.erase("type");
    rope["rope_theta"] = config.value("rope_theta", 10000.0);
    rope["partial_rotary_factor"] = config.value("partial_rotary_factor", 1.0);
    for (const char* key : {"rope_scaling", "rope_theta", "partial_rotary_factor"}) config.erase(key);
    config["rope_parameters"] = rope;
    const ModelConfig fresh = read_hf_config(folder.write("config.json", config.dump())).config;
    EXPECT_EQ(fresh.ropes.at(0).freqs, old.ropes.at(0).freqs);
    EXPECT_EQ(fresh.ropes[0].scale, old.ropes[0].scale);
    EXPECT_EQ(fresh.context, old.context);
  }
}

}  // namespace
}  // namespace sheaf

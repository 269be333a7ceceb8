#include "io/model/lora.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/model/model_files.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/model/golden.h"

namespace sheaf {
namespace {

using nlohmann::json;

class Lora : public testing::Test {
 protected:
  Lora() {
    for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) {
      folder_.write(name, read_text(golden("llama_lora/") + name));
    }
  }
  void refused(const json& changes, const std::vector<std::string>& parts) {
    json config = read_golden_json("llama_lora/adapter_config.json");
    config.update(changes);
    folder_.write("adapter_config.json", config.dump());
    expect_refusal([&] { load_model(golden("llama"), folder_.path()); }, parts);
  }
  TempFolder folder_;
};

TEST_F(Lora, UnsupportedAdaptersAreRefusedByName) {
  refused({{"use_dora", true}}, {"use_dora"});
  refused({{"bias", "all"}}, {"bias", "all"});
  refused({{"modules_to_save", {"lm_head"}}}, {"modules_to_save", "lm_head"});
  refused({{"peft_type", "IA3"}}, {"\"IA3\"", "LORA"});
  refused({{"rank_pattern", {{"q_proj", 2}}}}, {"rank_pattern"});
  refused({{"init_lora_weights", "pissa"}}, {"init_lora_weights", "pissa"});
  refused({{"corda_config", {{"x", 1}}}}, {"corda_config"});
  refused({{"fan_in_fan_out", true}}, {"fan_in_fan_out"});
  refused({{"r", 0}}, {"\"r\""});
  refused({{"r", 4}}, {"module", "[4, in]"});
  refused({{"lora_alpha", "8"}}, {"lora_alpha", "number"});
}

TEST_F(Lora, RefusesAnAdapterOfAnotherModel) {
  expect_refusal([&] { load_model(golden("phi3"), folder_.path()); },
                 {"gate_proj", "not a linear layer of this model"});
  expect_refusal([&] { load_model(golden("smollm"), folder_.path()); },
                 {"is for a weight of shape [32, 32], but the model's has [48, 48]"});
}

TEST_F(Lora, RefusesIncompleteFolders) {
  std::string weights = read_text(folder_.path() + "/adapter_model.safetensors");
  const size_t at = weights.find("q_proj.lora_B");
  ASSERT_NE(at, std::string::npos);
  folder_.write("adapter_model.safetensors", weights.replace(at, 13, "x_proj.lora_B"));
  expect_refusal([&] { load_model(golden("llama"), folder_.path()); }, {"q_proj.lora_B.weight", "missing"});
  std::filesystem::remove(folder_.path() + "/adapter_model.safetensors");
  expect_refusal([&] { load_model(golden("llama"), folder_.path()); },
                 {"adapter_model.safetensors", "no such file"});
}

}  // namespace
}  // namespace sheaf

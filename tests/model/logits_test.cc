#include <algorithm>
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "cpu/cpu_backend.h"
#include "io/model/model_files.h"
#include "tests/model/golden.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

constexpr int32_t page_size = 8;

/// One sequence in pages that lie in no particular order.
class OneSequence {
 public:
  OneSequence(Backend& backend, int32_t most_tokens) : backend_(backend) {
    const int32_t pages = (most_tokens + page_size - 1) / page_size;
    for (int32_t i = 0; i < pages; ++i) pages_.push_back(i % 2 == 0 ? pages - 1 - i / 2 : i / 2);
    backend_.allocate_kv(pages, page_size);
  }

  /// Runs `tokens` as one causal tile and gives the logits of every row.
  std::vector<float> feed(const Tokens& tokens) {
    StepBatch batch;
    for (const TokenId token : tokens) {
      const int32_t row = batch.rows();
      const int32_t position = length_ + row;
      batch.tokens.push_back(token);
      batch.positions.push_back(position);
      batch.kv_slots.push_back(pages_[static_cast<size_t>(position / page_size)] * page_size +
                               position % page_size);
      batch.tile_rows.push_back({row, position + 1});
      Pick pick;
      pick.row = row;
      batch.picks.push_back(pick);
    }
    length_ += batch.rows();
    const int32_t used = (length_ + page_size - 1) / page_size;
    batch.pages.assign(pages_.begin(), pages_.begin() + used);
    batch.spans.push_back({0, length_});
    batch.tiles.push_back({0, 0, batch.rows()});
    std::vector<float> logits(tokens.size() * static_cast<size_t>(backend_.config().vocab));
    picked_.resize(tokens.size());
    backend_.step(batch, picked_, logits);
    return logits;
  }

  TokenId last_pick() const { return picked_.back().token; }

  Tokens greedy(size_t count) {
    Tokens out{last_pick()};
    while (out.size() < count) {
      feed({out.back()});
      out.push_back(last_pick());
    }
    return out;
  }

 private:
  Backend& backend_;
  std::vector<int32_t> pages_;
  std::vector<Picked> picked_;
  int32_t length_ = 0;
};

std::unique_ptr<Backend> make_backend(bool quick, const Model& model) {
  return quick ? make_quick_backend(model, 2) : make_reference_backend(model);
}

struct Case {
  const char* name;
  const char* model;
  const char* adapter;   ///< may be empty
  const char* expected;  ///< folder
  int32_t context = 0;   ///< of use_context(), beyond which the long logits are expected; 0: the model's own
};

constexpr Case cases[] = {
    {"llama", "llama", "", "llama"},
    {"llama_gguf", "llama_gguf/model.gguf", "", "llama"},
    {"llama3", "llama3", "", "llama3"},
    {"llama3_gguf", "llama3_gguf/model.gguf", "", "llama3"},
    {"llama_linear", "llama_linear/model.safetensors", "", "llama_linear"},
    {"llama_quantized_gguf", "llama_quantized_gguf/model.gguf", "", "llama_quantized_gguf"},
    {"smollm_sharded", "smollm", "", "smollm"},
    {"qwen2", "qwen2", "", "qwen2"},
    {"qwen2_gguf", "qwen2_gguf/model.gguf", "", "qwen2"},
    {"qwen2_yarn", "qwen2_yarn", "", "qwen2_yarn"},
    {"qwen3", "qwen3", "", "qwen3"},
    {"qwen3_gguf", "qwen3_gguf/model.gguf", "", "qwen3"},
    {"mistral", "mistral", "", "mistral"},
    {"mistral_gguf", "mistral_gguf/model.gguf", "", "mistral"},
    {"phi3", "phi3", "", "phi3"},
    {"phi3_longrope", "phi3_longrope", "", "phi3_longrope"},
    {"phi3_longrope_gguf", "phi3_longrope_gguf/model.gguf", "", "phi3_longrope"},
    {"olmo2", "olmo2", "", "olmo2"},
    {"olmo2_gguf", "olmo2_gguf/model.gguf", "", "olmo2"},
    {"granite", "granite", "", "granite"},
    {"granite_gguf", "granite_gguf/model.gguf", "", "granite"},
    {"smollm3", "smollm3", "", "smollm3"},
    {"smollm3_gguf", "smollm3_gguf/model.gguf", "", "smollm3"},
    {"phi3_long", "phi3_longrope", "", "phi3_longrope", 256},
    {"phi3_long_gguf", "phi3_longrope_gguf/model.gguf", "", "phi3_longrope", 256},
    {"mistral_window", "mistral_window", "", "mistral_window"},
    {"gemma2", "gemma2", "", "gemma2"},
    {"gemma2_gguf", "gemma2_gguf/model.gguf", "", "gemma2"},
    {"gemma3", "gemma3", "", "gemma3"},
    {"gemma3_gguf", "gemma3_gguf/model.gguf", "", "gemma3"},
    {"gemma3_vision", "gemma3_vision", "", "gemma3"},
    {"olmo3", "olmo3", "", "olmo3"},
    {"olmo3_gguf", "olmo3_gguf/model.gguf", "", "olmo3"},
    {"glm4", "glm4", "", "glm4"},
    {"glm4_gguf", "glm4_gguf/model.gguf", "", "glm4"},
    {"glm4_lora", "glm4", "glm4_lora", "glm4_lora"},
    {"qwen3_moe", "qwen3_moe", "", "qwen3_moe"},
    {"qwen3_moe_gguf", "qwen3_moe_gguf/model.gguf", "", "qwen3_moe"},
    {"qwen3_moe_lora", "qwen3_moe", "qwen3_moe_lora", "qwen3_moe_lora"},
    {"qwen3_moe_gguf_lora", "qwen3_moe_gguf/model.gguf", "qwen3_moe_lora", "qwen3_moe_lora"},
    {"qwen3_moe_experts_lora", "qwen3_moe", "qwen3_moe_experts_lora", "qwen3_moe_experts_lora"},
    {"qwen3_moe_gguf_experts_lora", "qwen3_moe_gguf/model.gguf", "qwen3_moe_experts_lora",
     "qwen3_moe_experts_lora"},
    {"qwen2_moe", "qwen2_moe", "", "qwen2_moe"},
    {"qwen2_moe_gguf", "qwen2_moe_gguf/model.gguf", "", "qwen2_moe"},
    {"olmoe", "olmoe", "", "olmoe"},
    {"olmoe_gguf", "olmoe_gguf/model.gguf", "", "olmoe"},
    {"mixtral", "mixtral", "", "mixtral"},
    {"mixtral_gguf", "mixtral_gguf/model.gguf", "", "mixtral"},
    {"granitemoe", "granitemoe", "", "granitemoe"},
    {"granitemoe_gguf", "granitemoe_gguf/model.gguf", "", "granitemoe"},
    {"glm4_moe", "glm4_moe", "", "glm4_moe"},
    {"gpt_oss", "gpt_oss", "", "gpt_oss"},
    {"gpt_oss_gguf", "gpt_oss_gguf/model.gguf", "", "gpt_oss"},
    {"gpt_oss_long", "gpt_oss", "", "gpt_oss", 256},
    {"gpt_oss_long_gguf", "gpt_oss_gguf/model.gguf", "", "gpt_oss", 256},
    {"gpt_oss_mxfp4", "gpt_oss_mxfp4", "", "gpt_oss_mxfp4"},
    {"gpt_oss_mxfp4_gguf", "gpt_oss_mxfp4_gguf/model.gguf", "", "gpt_oss_mxfp4"},
    {"glm4_gguf_lora", "glm4_gguf/model.gguf", "glm4_lora", "glm4_lora"},
    {"llama_lora", "llama", "llama_lora", "llama_lora"},
    {"llama_gguf_lora", "llama_gguf/model.gguf", "llama_lora", "llama_lora"},
    {"phi3_lora", "phi3", "phi3_lora", "phi3_lora"},
};

class Logits : public testing::TestWithParam<std::tuple<Case, bool>> {};

TEST_P(Logits, EqualHuggingFace) {
  const auto& [test, quick] = GetParam();
  const std::string adapter = *test.adapter == '\0' ? "" : golden(test.adapter);
  Model model = load_model(golden(test.model), adapter);
  if (test.context > 0) use_context(model.config, test.context, "the test");
  const std::string name = std::string(test.expected) + (test.context > 0 ? "/expected_long" : "/expected");
  const auto expected = read_golden_json(name + ".json");
  const auto tokens = expected["tokens"].get<Tokens>();
  const auto greedy = expected["greedy"].get<Tokens>();
  const std::vector<float> want = floats_of(read_text(golden(name + ".f32")));
  ASSERT_EQ(model.config.vocab, expected["vocab"].get<int32_t>());
  ASSERT_EQ(want.size(), tokens.size() * static_cast<size_t>(model.config.vocab));

  const auto backend = make_backend(quick, model);
  OneSequence sequence(*backend, static_cast<int32_t>(tokens.size() + greedy.size()));
  const std::vector<float> got = sequence.feed(tokens);
  float scale = 0;
  float worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    scale = std::max(scale, std::abs(want[i]));
    worst = std::max(worst, std::abs(got[i] - want[i]));
    ASSERT_FALSE(std::isnan(got[i]));
  }
  EXPECT_GT(scale, 0.5f);
  EXPECT_LT(worst, 2e-5f * std::max(scale, 1.0f)) << "largest logit " << scale;
  EXPECT_EQ(sequence.greedy(greedy.size()), greedy);
}

INSTANTIATE_TEST_SUITE_P(Families, Logits, testing::Combine(testing::ValuesIn(cases), testing::Bool()),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) +
                                  (std::get<1>(test.param) ? "_quick" : "_reference");
                         });

TEST(TextPart, LeavesTheRestOutWithOneNotice) {
  const std::string notice = load_model(golden("gemma3_vision")).notice;
  EXPECT_NE(notice.find("only the text model is used; 1 tensor of"), std::string::npos) << notice;
}

TEST(FurtherLayers, AreLeftOut) {
  const TempFolder folder;
  std::filesystem::copy(golden("glm4_moe"), folder.path(), std::filesystem::copy_options::recursive);
  auto config = nlohmann::json::parse(read_text(golden("glm4_moe/config.json")));
  config["num_hidden_layers"] = 2;
  config["num_nextn_predict_layers"] = 1;
  folder.write("config.json", config.dump());
  EXPECT_EQ(load_model(folder.path()).layers.size(), 2U);
  config["num_nextn_predict_layers"] = 0;
  folder.write("config.json", config.dump());
  EXPECT_THROW(load_model(folder.path()), Error);
}

TEST(DefaultModel, EqualsHuggingFace) {
  NEED_MODEL();
  const Model model = load_model(test::kDefaultModel);
  const auto goldens = read_golden_json("smollm2.json");
  ASSERT_FALSE(goldens.empty());
  for (const auto& expected : goldens) {
    const auto tokens = expected["tokens"].get<Tokens>();
    const auto greedy = expected["greedy"].get<Tokens>();
    const auto backend = make_backend(true, model);
    OneSequence sequence(*backend, static_cast<int32_t>(tokens.size() + greedy.size()));
    const std::vector<float> logits = sequence.feed(tokens);
    const float* last = logits.data() + (tokens.size() - 1) * static_cast<size_t>(model.config.vocab);
    for (size_t i = 0; i < expected["top_ids"].size(); ++i) {
      const auto id = expected["top_ids"][i].get<size_t>();
      EXPECT_NEAR(last[id], expected["top_logits"][i].get<float>(), 1e-3f) << "token " << id;
    }
    EXPECT_EQ(sequence.greedy(greedy.size()), greedy) << expected["text"];
  }
}

}  // namespace
}  // namespace sheaf

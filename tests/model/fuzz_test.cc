// Damaged model files: whatever the bytes, loading gives a model or an Error, and no request for memory is
// out of proportion to the files. SHEAF_FUZZ_SECONDS sets how long each target runs, SHEAF_FUZZ_SEED where it
// starts.
#include "tests/fuzz.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <random>

#include "core/base/error.h"
#include "io/model/gguf.h"
#include "io/model/model_files.h"
#include "io/model/quantization.h"
#include "io/model/safetensors.h"
#include "tests/files.h"
#include "tests/model/expert_checkpoint.h"
#include "tests/model/golden.h"
#include "tests/model/largest_allocation.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

double environment(const char* name, double fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : std::atof(value);
}

/// Changes bytes, mostly in the first `head` of them, where counts, sizes and offsets live.
class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  size_t below(size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random_() % limit); }

  std::string mutate(std::string bytes, size_t head) {
    const size_t changes = 1 + below(4);
    for (size_t i = 0; i < changes && !bytes.empty(); ++i) change(bytes, std::min(head, bytes.size()));
    return bytes;
  }

 private:
  void change(std::string& bytes, size_t head) {
    const size_t at = below(below(8) == 0 ? bytes.size() : head);
    const size_t room = bytes.size() - at;
    switch (below(8)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, 1 + below(16));
        break;
      case 4:
        bytes.insert(at, bytes.substr(below(head), 1 + below(64)));
        break;
      case 5:
        overwrite(bytes, at, std::min<size_t>(room, 8));
        break;
      case 6:
        overwrite(bytes, at, std::min<size_t>(room, 4));
        break;
      default:
        spell(bytes, at);
        break;
    }
  }

  void overwrite(std::string& bytes, size_t at, size_t size) {
    static constexpr uint64_t numbers[] = {0,
                                           1,
                                           2,
                                           31,
                                           32,
                                           33,
                                           255,
                                           256,
                                           65535,
                                           65536,
                                           0x7fffffff,
                                           0x80000000,
                                           0xffffffff,
                                           uint64_t{1} << 32,
                                           uint64_t{1} << 40,
                                           uint64_t{1} << 61,
                                           uint64_t{1} << 62,
                                           INT64_MAX,
                                           uint64_t{1} << 63,
                                           UINT64_MAX - 7,
                                           UINT64_MAX};
    const uint64_t number = numbers[below(std::size(numbers))];
    std::memcpy(bytes.data() + at, &number, size);
  }

  /// Puts a piece of JSON somewhere, in place of a number where there is one.
  void spell(std::string& bytes, size_t at) {
    static const std::string pieces[] = {"0",
                                         "-1",
                                         "1e999",
                                         "1e-400",
                                         "18446744073709551616",
                                         "9223372036854775807",
                                         "2147483648",
                                         "null",
                                         "true",
                                         "\"\"",
                                         "[]",
                                         "{}",
                                         "[[",
                                         "{\"a\":",
                                         "\\u0000",
                                         "\xff",
                                         "0.5",
                                         "NaN",
                                         "1000000",
                                         ","};
    const size_t digit = bytes.find_first_of("0123456789", at);
    const size_t place = below(2) == 0 && digit != std::string::npos ? digit : at;
    size_t length = 0;
    while (place + length < bytes.size() &&
           std::isdigit(static_cast<unsigned char>(bytes[place + length])) != 0)
      ++length;
    bytes.replace(place, length, pieces[below(std::size(pieces))]);
  }

  std::mt19937_64 random_;
};

/// Reads every weight, so that a range outside its mapping is touched.
void read_everything(const Model& model) {
  const auto touch = [](const Matrix& matrix) {
    if (!matrix.empty()) (void)matrix.read_all();
  };
  touch(model.embedding);
  touch(model.output);
  touch(model.final_norm);
  touch(model.output_bias);
  for (const LayerWeights& layer : model.layers) {
    for (const Matrix* matrix : layer.linears()) touch(*matrix);
    for (const Matrix* vector : layer.vectors()) touch(*vector);
  }
}

struct Outcome {
  int loaded = 0;
  int refused = 0;
};

/// Runs `load` on damaged copies of `good` written into `folder` under `name`. `file`: what it is called.
Outcome fuzz_bytes(const TempFolder& folder, const std::string& good, const std::string& file,
                   const std::string& name, size_t head, uint64_t salt, const std::function<void()>& load) {
  const auto seed = static_cast<uint64_t>(environment("SHEAF_FUZZ_SEED", 1)) * 1000 + salt;
  Mutator mutator(seed);
  const auto stop = std::chrono::steady_clock::now() +
                    std::chrono::duration<double>(environment("SHEAF_FUZZ_SECONDS", 1) / 2);
  Outcome outcome;
  std::vector<std::string> found = past_findings(file);
  for (int round = 0; round < 20 || std::chrono::steady_clock::now() < stop; ++round) {
    const std::string bytes = found.empty() ? mutator.mutate(good, head) : found.back();
    if (!found.empty()) found.pop_back();
    folder.write(name, keep_input(bytes));
    take_largest_allocation();
    try {
      load();
      ++outcome.loaded;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()), "");
      ++outcome.refused;
    } catch (const std::exception& other) {
      ADD_FAILURE() << file << ", seed " << seed << ", round " << round << ": " << other.what();
      return outcome;
    }
    const size_t largest = take_largest_allocation();
    EXPECT_LT(largest, 32 * bytes.size() + (size_t{1} << 20))
        << file << ", seed " << seed << ", round " << round;
  }
  folder.write(name, good);
  EXPECT_GT(outcome.refused, 0) << file;
  return outcome;
}

/// The same of `file`, a path in goldens.
Outcome fuzz(const TempFolder& folder, const std::string& file, const std::string& name, size_t head,
             uint64_t salt, const std::function<void()>& load) {
  return fuzz_bytes(folder, read_text(golden(file)), file, name, head, salt, load);
}

void read_metadata(const GgufFile& file) {
  for (const auto& [key, value] : file.values()) {
    const std::function<void()> getters[] = {
        [&] { (void)file.string(key); },  [&] { (void)file.uint(key); },    [&] { (void)file.number(key); },
        [&] { (void)file.boolean(key); }, [&] { (void)file.strings(key); }, [&] { (void)file.floats(key); },
        [&] { (void)file.ints(key); }};
    for (const auto& get : getters) {
      try {
        get();
      } catch (const Error&) {
      }
    }
  }
}

TEST(Fuzz, GgufModelsAreReadOrRefused) {
  const TempFolder folder;
  const std::string path = folder.path() + "/model.gguf";
  for (const char* name : {"llama_quantized_gguf/model.gguf", "phi3_longrope_gguf/model.gguf",
                           "gemma3_gguf/model.gguf", "olmo3_gguf/model.gguf", "granite_gguf/model.gguf",
                           "qwen2_moe_gguf/model.gguf", "gpt_oss_mxfp4_gguf/model.gguf"}) {
    const Outcome outcome = fuzz(folder, name, "model.gguf", 3000, 1, [&] {
      read_metadata(GgufFile::open(path));
      read_everything(load_model(path));
    });
    EXPECT_GT(outcome.loaded, 0) << "changes to weights alone leave a model";
  }
}

TEST(Fuzz, SafetensorsModelsAreReadOrRefused) {
  const TempFolder folder;
  fs::copy(golden("phi3"), folder.path(), fs::copy_options::recursive);
  fuzz(folder, "phi3/model.safetensors", "model.safetensors", 2400, 2,
       [&] { read_everything(load_model(folder.path())); });
  fuzz(folder, "phi3/config.json", "config.json", 1 << 20, 3,
       [&] { read_everything(load_model(folder.path())); });
}

TEST(Fuzz, DescriptionsOfEveryFamilyAreReadOrRefused) {
  for (const char* name : {"gemma2", "gemma3", "gemma3_vision", "olmo3", "granite", "smollm3", "glm4",
                           "qwen3_moe", "qwen2_moe", "granitemoe", "glm4_moe", "gpt_oss", "gpt_oss_mxfp4"}) {
    const TempFolder folder;
    fs::copy(golden(name), folder.path(), fs::copy_options::recursive);
    fuzz(folder, std::string(name) + "/config.json", "config.json", 1 << 20, 10,
         [&] { read_everything(load_model(folder.path())); });
  }
}

TEST(Fuzz, ExpertsAreReadOrRefused) {
  for (const char* name : {"qwen3_moe", "granitemoe", "glm4_moe", "gpt_oss", "gpt_oss_mxfp4"}) {
    const TempFolder folder;
    fs::copy(golden(name), folder.path(), fs::copy_options::recursive);
    fuzz(folder, std::string(name) + "/model.safetensors", "model.safetensors", 6000, 11,
         [&] { read_everything(load_model(folder.path())); });
  }
  using Format = test::ExpertCheckpoint::Format;
  for (const Format format : {Format::fp8, Format::gptq, Format::awq}) {
    const TempFolder folder;
    const test::ExpertCheckpoint checkpoint(format);
    checkpoint.write(folder);
    const auto load = [&] { read_everything(load_model(folder.path())); };
    load();
    fuzz_bytes(folder, checkpoint.tensors.bytes(), "experts in fewer bits", "model.safetensors", 5000, 12,
               load);
  }
}

TEST(Fuzz, ShardedModelsAreReadOrRefused) {
  const TempFolder folder;
  fs::copy(golden("smollm"), folder.path(), fs::copy_options::recursive);
  const auto load = [&] { read_everything(load_model(folder.path())); };
  fuzz(folder, "smollm/model.safetensors.index.json", "model.safetensors.index.json", 1 << 20, 4, load);
  fuzz(folder, "smollm/model-00002-of-00003.safetensors", "model-00002-of-00003.safetensors", 2000, 5, load);
}

TEST(Fuzz, QuantizedLayersAreReadOrRefused) {
  const TempFolder folder;
  fs::copy(golden("quantized"), folder.path(), fs::copy_options::recursive);
  const auto load = [&] {
    const nlohmann::json about = read_json_object(folder.path() + "/configs.json", 1 << 20);
    for (const auto& [name, config] : JsonFields(about, "configs").find("configs")->items()) {
      SafetensorsModel model = open_safetensors_model(folder.path() + "/layers.safetensors");
      const nlohmann::json whole{{"quantization_config", config}};
      const auto how = read_quantization(JsonFields(whole, "configs"), folder.path() + "/config.json");
      const auto matrix = take_quantized(model.tensors, how.value(), name, 16, 256);
      if (matrix) (void)matrix->read_all();
    }
  };
  load();
  fuzz(folder, "quantized/layers.safetensors", "layers.safetensors", 6000, 8, load);
  // Only what lies inside of the sections.
  const std::string good = read_text(golden("quantized/configs.json"));
  const nlohmann::json configs = nlohmann::json::parse(good).at("configs");
  Mutator mutator(9);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto one = std::next(configs.begin(), static_cast<std::ptrdiff_t>(mutator.below(configs.size())));
    const std::string text = keep_input(mutator.mutate(one.value().dump(), 1 << 20));
    try {
      SafetensorsModel model = open_safetensors_model(golden("quantized/layers.safetensors"));
      const nlohmann::json whole{{"quantization_config", parse_json(text, "config")}};
      const auto how = read_quantization(JsonFields(whole, "config"), folder.path() + "/config.json");
      const auto matrix = how ? take_quantized(model.tensors, *how, one.key(), 16, 256) : std::nullopt;
      if (matrix) (void)matrix->read_all();
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(Fuzz, AdaptersAreReadOrRefused) {
  const TempFolder folder;
  fs::copy(golden("llama_lora"), folder.path(), fs::copy_options::recursive);
  const auto load = [&] { read_everything(load_model(golden("llama_gguf/model.gguf"), folder.path())); };
  fuzz(folder, "llama_lora/adapter_config.json", "adapter_config.json", 1 << 20, 6, load);
  fuzz(folder, "llama_lora/adapter_model.safetensors", "adapter_model.safetensors", 3500, 7, load);
}

TEST(Fuzz, AdaptersOnAllExpertsAreReadOrRefused) {
  const TempFolder model, adapter;
  using test::ExpertCheckpoint;
  ExpertCheckpoint(ExpertCheckpoint::Format::fp8).write(model);
  constexpr int64_t kRanks = 2 * ExpertCheckpoint::kExperts, kRows = 2 * ExpertCheckpoint::kFfn;
  const std::string module = "base_model.model.model.layers.0.mlp.experts.";
  Tensors tensors;
  tensors.add(module + "lora_A.weight", {kRanks, ExpertCheckpoint::kHidden},
              std::vector<float>(static_cast<size_t>(kRanks * ExpertCheckpoint::kHidden), 0.5f));
  tensors.add(module + "lora_B.weight", {kRows, kRanks},
              std::vector<float>(static_cast<size_t>(kRows * kRanks), 0.25f));
  const std::string config =
      R"({"peft_type":"LORA","r":2,"lora_alpha":4,"target_parameters":["mlp.experts.gate_up_proj"]})";
  adapter.write("adapter_config.json", config);
  adapter.write("adapter_model.safetensors", tensors.bytes());
  const auto load = [&] { read_everything(load_model(model.path(), adapter.path())); };
  load();
  fuzz_bytes(adapter, config, "an adapter's config", "adapter_config.json", 1 << 20, 13, load);
  fuzz_bytes(adapter, tensors.bytes(), "weights for all experts", "adapter_model.safetensors", 300, 14, load);
}

}  // namespace
}  // namespace sheaf

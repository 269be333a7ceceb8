// Weights that are NaN or infinite are refused by name, in every format and in every form that a backend
// reads.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>

#include "cpu/cpu_backend.h"
#include "io/model/gguf.h"
#include "io/model/model_files.h"
#include "io/model/quantization.h"
#include "io/model/safetensors.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/model/golden.h"
#include "tests/model/poison.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

enum class Form { quick, reference, rounded, stored, narrow };
constexpr Form kForms[] = {Form::quick, Form::reference, Form::rounded, Form::stored, Form::narrow};

void read_matrix(const Matrix& matrix, Form form) {
  const auto values = static_cast<size_t>(matrix.rows * matrix.cols);
  if (form == Form::rounded) {
    std::vector<uint16_t> bits(values);
    matrix.read_bf16(0, matrix.rows, bits.data());
  } else if (form == Form::stored) {
    std::vector<std::byte> bytes(static_cast<size_t>(matrix.rows * matrix.row_bytes()));
    matrix.read_stored(0, matrix.rows, bytes.data());
  } else if (form == Form::narrow) {
    std::vector<uint8_t> bytes(values);
    std::vector<float> scales(static_cast<size_t>(matrix.rows));
    matrix.read_e4m3(0, matrix.rows, bytes.data(), scales.data());
  } else {
    matrix.read_all();
  }
}

/// Every weight of a model, as a backend reads it.
void read_model(const Model& model, Form form) {
  if (form == Form::quick) {
    make_quick_backend(model, 1);
    return;
  }
  if (form == Form::reference) {
    make_reference_backend(model);
    return;
  }
  const auto read = [&](const Matrix& matrix, Form own) {
    if (!matrix.empty()) read_matrix(matrix, own);
  };
  read(model.embedding, form);
  read(model.output, form);
  read(model.final_norm, Form::quick);
  for (const LayerWeights& layer : model.layers) {
    for (const Matrix* matrix : layer.linears()) read(*matrix, form);
    for (const Matrix* vector : layer.vectors()) read(*vector, Form::quick);
  }
}

/// A tensor as it lies in its file.
struct Placed {
  std::string name;
  DType dtype;
  size_t offset;
  int64_t blocks;
};

std::vector<Placed> tensors_of(const std::string& file) {
  std::vector<Placed> all;
  const auto add = [&](const std::string& name, DType dtype, const std::byte* data, uint64_t size,
                       const MappedFile& mapped) {
    all.push_back({name, dtype, static_cast<size_t>(data - mapped.bytes().data()),
                   static_cast<int64_t>(size) / block_bytes(dtype)});
  };
  if (file.ends_with(".gguf")) {
    const GgufFile gguf = GgufFile::open(file);
    for (const auto& [name, tensor] : gguf.tensors())
      add(name, tensor.dtype.value(), tensor.data, tensor.size, *gguf.file());
  } else {
    const SafetensorsFile plain = SafetensorsFile::open(file);
    for (const auto& [name, tensor] : plain.tensors())
      if (tensor.dtype) add(name, *tensor.dtype, tensor.data, tensor.size, *plain.file());
  }
  return all;
}

/// A copy of a golden model whose files can be changed.
class Changeable {
 public:
  explicit Changeable(const std::string& name) {
    fs::copy(golden(name), folder_.path(), fs::copy_options::recursive);
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (const auto kind = entry.path().extension(); kind == ".gguf" || kind == ".safetensors")
        files_.push_back(entry.path().string());
    std::ranges::sort(files_);
  }
  const std::vector<std::string>& files() const { return files_; }
  std::string model() const { return files_[0].ends_with(".gguf") ? files_[0] : folder_.path(); }

  /// Loads it with other bytes somewhere.
  template <class Use>
  void with(const std::string& file, size_t at, const std::string& bytes, Use&& use) const {
    const std::string before = read_text(file);
    std::string changed = before;
    folder_.write(fs::path(file).filename(), changed.replace(at, bytes.size(), bytes));
    use();
    folder_.write(fs::path(file).filename(), before);
  }

 private:
  TempFolder folder_;
  std::vector<std::string> files_;
};

class FiniteModel : public testing::TestWithParam<const char*> {};

TEST_P(FiniteModel, IsReadAndEveryDamagedTensorIsRefusedByName) {
  const Changeable model(GetParam());
  for (const Form form : kForms) read_model(load_model(model.model()), form);
  std::mt19937 random(3);
  int tried = 0;
  for (const std::string& file : model.files())
    for (const Placed& tensor : tensors_of(file))
      for (const Poison& poison : poisons(tensor.dtype))
        for (const int64_t block : some_blocks(tensor.blocks, static_cast<uint32_t>(random()))) {
          const auto at = tensor.offset + static_cast<size_t>(block * block_bytes(tensor.dtype) + poison.at);
          const Form form = kForms[static_cast<size_t>(tried++) % std::size(kForms)];
          SCOPED_TRACE(tensor.name + " block " + std::to_string(block) + " form " +
                       std::to_string(static_cast<int>(form)));
          model.with(file, at, poison.bytes, [&] {
            expect_refusal([&] { read_model(load_model(model.model()), form); },
                           {file + ": tensor " + tensor.name});
          });
        }
  EXPECT_GT(tried, 100);
}

INSTANTIATE_TEST_SUITE_P(Formats, FiniteModel,
                         testing::Values("llama", "qwen2", "qwen3", "phi3", "olmo2", "smollm", "llama_gguf",
                                         "qwen2_gguf", "qwen3_gguf", "llama3_gguf", "phi3_longrope_gguf",
                                         "llama_quantized_gguf"),
                         [](const auto& name) { return std::string(name.param); });

TEST(Finite, InspectReadsNoWeights) {
  const Changeable model("llama");
  const Placed tensor = tensors_of(model.files()[0]).front();
  model.with(model.files()[0], tensor.offset, poisons(tensor.dtype)[0].bytes,
             [&] { EXPECT_NO_THROW(load_model(model.model())); });
}

/// What has fewer bits: every scale, and every byte of FP8.
TEST(FiniteQuantized, EveryDamagedPartIsRefusedByName) {
  const nlohmann::json about = read_golden_json("quantized/configs.json");
  const int64_t rows = about.at("rows"), cols = about.at("cols");
  const Changeable files("quantized");
  const std::string file = files.files()[0];
  const auto read = [&](const std::string& name, Form form) {
    SafetensorsModel model = open_safetensors_model(file);
    const nlohmann::json config{{"quantization_config", about.at("configs").at(name)}};
    const auto how = read_quantization(JsonFields(config, "config.json"), "config.json").value();
    read_matrix(take_quantized(model.tensors, how, name, rows, cols).value(), form);
  };
  const SafetensorsFile plain = SafetensorsFile::open(file);
  std::mt19937 random(4);
  int tried = 0;
  for (const auto& [name, config] : about.at("configs").items())
    for (const Form form : kForms) read(name, form);
  for (const auto& [tensor_name, tensor] : plain.tensors()) {
    const std::string module = tensor_name.substr(0, tensor_name.find('.'));
    const bool narrow = tensor.type == "F8_E4M3";
    if ((!tensor.dtype && !narrow) || tensor_name.ends_with(".expected") ||
        tensor_name.ends_with("input_scale"))
      continue;
    const int64_t bytes = narrow ? 1 : block_bytes(*tensor.dtype);
    const auto ways = narrow ? std::vector<Poison>{{0, "\x7f"}, {0, "\xff"}} : poisons(*tensor.dtype);
    for (const Poison& poison : ways)
      for (const int64_t at :
           some_blocks(static_cast<int64_t>(tensor.size) / bytes, static_cast<uint32_t>(random())))
        for (const Form form : kForms) {
          SCOPED_TRACE(tensor_name + " at " + std::to_string(at));
          const auto offset = static_cast<size_t>(tensor.data - plain.file()->bytes().data() + at * bytes);
          files.with(file, offset, poison.bytes, [&] {
            expect_refusal([&] { read(module, form); }, {file + ": tensor " + tensor_name + " holds"});
          });
          ++tried;
        }
  }
  EXPECT_GT(tried, 500);
}

class FiniteLora : public testing::Test {
 protected:
  void SetUp() override { fs::copy(golden("llama_lora"), folder_.path()); }
  std::string file() const { return folder_.path() + "/adapter_model.safetensors"; }
  void refused(Form form, const std::vector<std::string>& parts) const {
    expect_refusal([&] { read_model(load_model(golden("llama"), folder_.path()), form); }, parts);
  }
  TempFolder folder_;
};

TEST_F(FiniteLora, EveryDamagedFactorIsRefusedByName) {
  const std::string before = read_text(file());
  for (const Placed& tensor : tensors_of(file()))
    for (const Poison& poison : poisons(tensor.dtype))
      for (const int64_t block : some_blocks(tensor.blocks, 5)) {
        std::string changed = before;
        const auto at = tensor.offset + static_cast<size_t>(block * block_bytes(tensor.dtype));
        folder_.write("adapter_model.safetensors", changed.replace(at, poison.bytes.size(), poison.bytes));
        refused(Form::quick, {file(), tensor.name, "holds"});
      }
}

TEST_F(FiniteLora, AMergeThatOverflowsNamesTheAdapter) {
  std::string changed = read_text(file());
  for (const Placed& tensor : tensors_of(file())) {
    if (tensor.name.find("layers.1.self_attn.q_proj") == std::string::npos) continue;
    ASSERT_EQ(tensor.dtype, DType::f32);
    for (int64_t i = 0; i < tensor.blocks; ++i)
      changed.replace(tensor.offset + static_cast<size_t>(4 * i), 4, raw(3e38f));
  }
  folder_.write("adapter_model.safetensors", changed);
  for (const Form form : {Form::quick, Form::reference, Form::rounded, Form::narrow})
    refused(form, {file(), "base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight", "overflows",
                   "lora_alpha"});
}

TEST_F(FiniteLora, AScaleThatIsNoFloatIsRefused) {
  nlohmann::json config = read_golden_json("llama_lora/adapter_config.json");
  config["lora_alpha"] = 1e300;
  folder_.write("adapter_config.json", config.dump());
  refused(Form::quick, {"adapter_config.json", "lora_alpha", "too large"});
}

/// In fp32 the sum is a number, in bf16 it rounds to infinity.
TEST(Finite, AMergeMayOverflowInBf16Alone) {
  const std::vector<float> values(32, 3.3e38f);
  Matrix matrix;
  matrix.name = "m";
  matrix.file = "model.safetensors";
  matrix.rows = 1;
  matrix.cols = 32;
  matrix.data = reinterpret_cast<const std::byte*>(values.data());
  auto delta = std::make_shared<LowRank>();
  delta->file = "adapter.safetensors";
  delta->module = "layer";
  delta->rank = 1;
  delta->scale = 1;
  delta->a.assign(32, 0.1e38f);
  delta->b = {1};
  matrix.adapter = delta;
  std::vector<uint16_t> bits(32);
  EXPECT_EQ(matrix.read_all()[0], 3.3e38f + 0.1e38f);
  expect_refusal([&] { matrix.read_bf16(0, 1, bits.data()); },
                 {"adapter.safetensors", "layer.lora_B.weight", "overflows"});
  delta->a.assign(32, 0.0f);
  EXPECT_NO_THROW(matrix.read_bf16(0, 1, bits.data()));
  const std::vector<float> large(32, 3.4e38f);
  matrix.adapter = nullptr;
  matrix.data = reinterpret_cast<const std::byte*>(large.data());
  EXPECT_EQ(matrix.read_all(), large);
  std::vector<std::byte> stored(128);
  expect_refusal([&] { matrix.read_bf16(0, 1, bits.data()); }, {"model.safetensors", "overflows bf16"});
  expect_refusal([&] { matrix.read_stored(0, 1, stored.data()); }, {"model.safetensors", "overflows bf16"});
}

/// Random bytes of every type: what is refused is exactly what does not become a number.
TEST(Finite, RandomBlocksAreRefusedExactlyWhereAValueIsNotFinite) {
  constexpr DType kTypes[] = {DType::f32,     DType::f16,      DType::bf16,    DType::q8_0,
                              DType::q4_0,    DType::q4_1,     DType::q5_0,    DType::q4_k,
                              DType::q5_k,    DType::q6_k,     DType::e4m3_32, DType::e4m3_128,
                              DType::int4_32, DType::int4_128, DType::nf4,     DType::mxfp4,
                              DType::q2_k,    DType::q3_k,     DType::iq4_nl,  DType::iq4_xs};
  std::mt19937 random(11);
  for (const DType dtype : kTypes) {
    int good = 0, bad = 0;
    for (int i = 0; i < 4000; ++i) {
      Matrix matrix;
      matrix.name = "m";
      matrix.dtype = dtype;
      matrix.rows = 1 + static_cast<int64_t>(random() % 3);
      matrix.cols = block_values(dtype) == 1 ? 32 : block_values(dtype);
      std::vector<std::byte> bytes(static_cast<size_t>(matrix.rows * matrix.row_bytes()));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
      // Bytes of FP8 are NaN as often as not.
      if (is_e4m3(dtype) && i % 2 == 0)
        for (std::byte& byte : bytes) byte &= std::byte{0xfe};
      matrix.data = bytes.data();
      const auto count = matrix.rows * matrix.cols;
      std::vector<float> floats(static_cast<size_t>(count));
      std::vector<uint16_t> bits(static_cast<size_t>(count));
      to_f32(dtype, bytes.data(), count, floats.data());
      to_bf16(dtype, bytes.data(), count, bits.data());
      const bool sound = std::ranges::all_of(floats, [](float value) { return std::isfinite(value); });
      const bool sound_bf16 = std::ranges::all_of(
          bits, [](uint16_t value) { return std::isfinite(std::bit_cast<float>(uint32_t{value} << 16)); });
      (sound_bf16 ? good : bad)++;
      for (const Form form : {Form::quick, Form::rounded, Form::stored, Form::narrow}) {
        const bool right = form == Form::rounded || form == Form::stored ? sound_bf16 : sound;
        bool read = true;
        try {
          read_matrix(matrix, form);
        } catch (const Error&) {
          read = false;
        }
        ASSERT_EQ(read, right) << dtype_name(dtype) << ", form " << static_cast<int>(form);
      }
    }
    EXPECT_GT(good, 50) << dtype_name(dtype);
    EXPECT_GT(bad, 20) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace sheaf

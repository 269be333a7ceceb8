// Experts in safetensors: in fewer bits, and damaged.
#include <gtest/gtest.h>
#include <limits>

#include "core/base/error.h"
#include "cpu/cpu_backend.h"
#include "io/model/model_files.h"
#include "tests/errors.h"
#include "tests/model/expert_checkpoint.h"
#include "tests/model/golden.h"

namespace sheaf {
namespace {

using test::ExpertCheckpoint;
using Format = ExpertCheckpoint::Format;

std::string without_last_part(const std::string& name) {
  return name.substr(0, name.rfind('.'));
}

class ExpertFormats : public testing::TestWithParam<Format> {};

TEST_P(ExpertFormats, AreReadByTheirDefinition) {
  const TempFolder folder;
  const ExpertCheckpoint checkpoint(GetParam());
  checkpoint.write(folder);
  const Model model = load_model(folder.path());
  ASSERT_EQ(model.layers.size(), 1U);
  ASSERT_EQ(model.layers[0].experts.size(), static_cast<size_t>(ExpertCheckpoint::kExperts));
  size_t compared = 0;
  for (const Matrix* matrix : model.layers[0].linears()) {
    const auto right = checkpoint.right.find(without_last_part(matrix->name));
    if (right == checkpoint.right.end()) continue;
    EXPECT_EQ(matrix->read_all(), right->second) << matrix->name;
    EXPECT_NE(matrix->dtype, DType::f32)
        << matrix->name << " is expanded when it is read, not when it is loaded";
    ++compared;
  }
  EXPECT_EQ(compared, checkpoint.right.size());
  for (const Precision precision : {Precision::f32, Precision::int16, Precision::int8})
    EXPECT_NO_THROW(make_quick_backend(model, 1, precision));
}

INSTANTIATE_TEST_SUITE_P(Formats, ExpertFormats, testing::Values(Format::fp8, Format::gptq, Format::awq),
                         [](const auto& test) {
                           return test.param == Format::fp8    ? "fp8_blocks"
                                  : test.param == Format::gptq ? "gptq"
                                                               : "awq";
                         });

class ExpertFiles : public testing::Test {
 protected:
  static constexpr int64_t kHidden = ExpertCheckpoint::kHidden, kFfn = ExpertCheckpoint::kFfn;

  void refused(const std::vector<std::string>& parts) {
    checkpoint_.write(folder_);
    std::vector<std::string> all = parts;
    all.emplace_back("model.safetensors");
    expect_refusal([&] { load_model(folder_.path()); }, all);
  }
  /// The bytes of the file with the first `from` replaced by `to`, which is as long.
  void refused_with(const std::string& from, const std::string& to, const std::vector<std::string>& parts) {
    std::string bytes = checkpoint_.tensors.bytes();
    ASSERT_EQ(from.size(), to.size());
    bytes.replace(bytes.find(from), from.size(), to);
    checkpoint_.write(folder_);
    folder_.write("model.safetensors", bytes);
    expect_refusal([&] { load_model(folder_.path()); }, parts);
  }

  TempFolder folder_;
  ExpertCheckpoint checkpoint_{Format::fp8};
};

TEST_F(ExpertFiles, MissingAndDoubledExpertsAreRefused) {
  refused_with("experts.2.up_proj.weight\"", "experts.7.up_proj.weight\"",
               {"model.layers.0.mlp.experts.2.up_proj.weight", "missing"});
  refused_with("experts.2.up_proj.weight\"", "experts.1.up_proj.weight\"",
               {"model.safetensors", "experts.1.up_proj.weight"});
  refused_with("experts.2.up_proj.weight_scale_inv\"", "experts.2.up_proj.weight_other_inv\"",
               {"experts.2.up_proj.weight", "F8_E4M3", "not supported"});
  checkpoint_.tensors.add(ExpertCheckpoint::expert(4, "up_proj") + ".weight", {kFfn, kHidden},
                          std::vector<float>(static_cast<size_t>(kFfn * kHidden)));
  refused({"model.layers.0.mlp.experts.4.up_proj.weight", "does not belong"});
}

TEST_F(ExpertFiles, AnExpertInTwoFormsIsRefused) {
  checkpoint_ = ExpertCheckpoint(Format::gptq);
  checkpoint_.tensors.add(ExpertCheckpoint::expert(1, "up_proj") + ".weight", {kFfn, kHidden},
                          std::vector<float>(static_cast<size_t>(kFfn * kHidden)));
  refused({"model.layers.0.mlp.experts.1.up_proj.weight", "does not belong"});
}

TEST_F(ExpertFiles, ScalesOfTheWrongShapeAreRefused) {
  const std::string down = ExpertCheckpoint::expert(3, "down_proj");
  checkpoint_.tensors.add(down + ".weight_scale_inv", {2, 1}, {1.0f, 1.0f});
  refused({down + ".weight_scale_inv", "[2, 1]", "256 rows", "block"});
  checkpoint_ = ExpertCheckpoint(Format::gptq);
  checkpoint_.tensors.add(down + ".scales", "F16", {1, kHidden}, std::string(2 * kHidden, '\1'));
  refused({down + ".scales", "[1, 256]", "[3, 256]"});
  checkpoint_ = ExpertCheckpoint(Format::awq);
  checkpoint_.tensors.add(down + ".qzeros", "I32", {3, 8}, std::string(3 * 8 * 4, '\1'));
  refused({down + ".qzeros", "[3, 8]", "[3, 32]"});
}

TEST_F(ExpertFiles, ScalesThatAreNotFiniteAreRefused) {
  const std::string up = ExpertCheckpoint::expert(0, "up_proj");
  checkpoint_.tensors.add(up + ".weight_scale_inv", {2, 2},
                          {1.0f, 1.0f, std::numeric_limits<float>::quiet_NaN(), 1.0f});
  refused({up + ".weight_scale_inv", "NaN"});
}

TEST_F(ExpertFiles, RoutersThatContradictTheExpertsAreRefused) {
  const std::string router = "model.layers.0.mlp.gate.weight";
  checkpoint_.tensors.add(router, {5, kHidden}, std::vector<float>(5 * kHidden));
  refused({router, "[5, 256]", "needs [4, 256]"});
}

TEST_F(ExpertFiles, RoutersThatAreNotFiniteAreRefused) {
  const std::string router = "model.layers.0.mlp.gate.weight";
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(4 * kHidden, 0.1f);
    values[700] = bad;
    checkpoint_.tensors.add(router, {4, kHidden}, values);
    checkpoint_.write(folder_);
    const Model model = load_model(folder_.path());
    expect_refusal([&] { make_quick_backend(model, 1); }, {"model.safetensors", router});
    expect_refusal([&] { make_quick_backend(model, 1, Precision::int8); }, {"model.safetensors", router});
    expect_refusal([&] { make_reference_backend(model); }, {"model.safetensors", router});
  }
}

}  // namespace
}  // namespace sheaf

#include "io/model/safetensors.h"

#include <filesystem>
#include <gtest/gtest.h>

#include "io/model/model_files.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/model/gguf_bytes.h"
#include "tests/model/golden.h"

namespace sheaf {
namespace {

class Safetensors : public testing::Test {
 protected:
  std::string write(const std::string& header, size_t data) {
    return folder_.write("test.safetensors", raw<uint64_t>(header.size()) + header + std::string(data, '\0'));
  }
  void refused(const std::string& header, size_t data, const std::vector<std::string>& parts) {
    const std::string path = write(header, data);
    expect_refusal([&] { SafetensorsFile::open(path); }, parts);
  }
  TempFolder folder_;
};

TEST_F(Safetensors, ReadsTensors) {
  const auto file = SafetensorsFile::open(write(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"c":{"dtype":"I64","shape":[0],"data_offsets":[16,16]}}  )",
      16));
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors().at("b").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.tensors().at("b").dtype, DType::bf16);
  EXPECT_EQ(file.tensors().at("b").data - file.tensors().at("a").data, 4);
  EXPECT_FALSE(file.tensors().at("c").dtype);
}

TEST_F(Safetensors, RefusesHeadersThatCannotBe) {
  expect_refusal([&] { SafetensorsFile::open(folder_.write("x", "abc")); }, {"too short"});
  expect_refusal([&] { SafetensorsFile::open(folder_.write("x", raw<uint64_t>(UINT64_MAX) + "{}")); },
                 {"claims to have a header"});
  expect_refusal([&] { SafetensorsFile::open(folder_.write("x", raw<uint64_t>(3) + "{}")); },
                 {"ends inside its header"});
  refused("[]", 0, {"not a safetensors file"});
  refused("{", 0, {"not valid JSON"});
  refused(R"({"a":1})", 0, {"\"a\"", "are needed"});
  refused(R"({"a":{"dtype":"F32","shape":[1]}})", 4, {"\"a\"", "data_offsets"});
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, {"\"a\"", "pair"});
  refused(R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4, {"\"a\"", "unknown type \"F33\""});
  refused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, {"\"a\"", "shape"});
  refused(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, {"\"a\"", "shape"});
  refused(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
          {"\"a\"", "counted"});
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, {"\"a\"", "has 4 bytes", "need 8"});
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, {"\"a\"", "in order"});
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4,
          {"\"a\"", "past the end of the file"});
  const std::string deep(5000, '[');
  refused("{\"a\":" + deep, 0, {"\"a\""});
  std::string ones = "1";
  for (int i = 0; i < 500; ++i) ones += ",1";
  refused("{\"a\":{\"shape\":[" + ones + "]}}", 0, {"\"a\"", "too long"});
}

TEST_F(Safetensors, RefusesOverlapHolesAndDoubles) {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  refused("{" + a + "," + a + "}", 8, {"\"a\"", "twice"});
  refused("{" + a + R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12, {"\"b\"", "overlaps"});
  refused("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16,
          {"4 bytes before tensor \"b\""});
  refused("{" + a + "}", 9, {"1 bytes at its end"});
  refused(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8, {"\"a\"", "twice"});
}

TEST_F(Safetensors, ShardsAreCheckedAgainstTheirIndex) {
  namespace fs = std::filesystem;
  const auto copy = [&] {
    fs::copy(golden("smollm"), folder_.path(),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  };
  copy();
  EXPECT_EQ(load_model(folder_.path()).config.layer_count(), 2);
  EXPECT_EQ(load_model(folder_.path()).notice, "");
  EXPECT_EQ(load_model(folder_.path() + "/model.safetensors.index.json").config.layer_count(), 2);
  const std::string index = read_text(folder_.path() + "/model.safetensors.index.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = index;
    const size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    folder_.write("model.safetensors.index.json", changed.replace(at, from.size(), to));
  };
  with("model-00001-of-00003.safetensors", "../model-00001-of-00003.safetensors");
  expect_refusal([&] { load_model(folder_.path()); }, {"not the name of a file in the same folder"});
  with("model-00001-of-00003", "model-00009-of-00003");
  expect_refusal([&] { load_model(folder_.path()); }, {"model-00009-of-00003.safetensors", "no such file"});
  with("\"model.norm.weight\"", "\"model.nerm.weight\"");
  expect_refusal([&] { load_model(folder_.path()); }, {"model.nerm.weight", "is not in"});
  with("weight_map", "weight_mop");
  expect_refusal([&] { load_model(folder_.path()); }, {"weight_map"});
  copy();
  fs::remove(folder_.path() + "/model.safetensors.index.json");
  expect_refusal([&] { load_model(folder_.path()); }, {"3 *.safetensors files", "index.json"});
}

}  // namespace
}  // namespace sheaf

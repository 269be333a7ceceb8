#include "io/model/gguf.h"

#include <gtest/gtest.h>

#include "io/model/model_files.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/model/gguf_bytes.h"
#include "tests/model/golden.h"

namespace sheaf {
namespace {

class Gguf : public testing::Test {
 protected:
  GgufFile open(const GgufBytes& made) { return GgufFile::open(folder_.write("test.gguf", made.bytes())); }
  void refused(const GgufBytes& made, const std::vector<std::string>& parts) {
    expect_refusal([&] { open(made); }, parts);
  }
  TempFolder folder_;
};

TEST_F(Gguf, ReadsValuesOfEveryKind) {
  GgufBytes made;
  made.u32("count", 7);
  made.f32("ratio", 0.5f);
  made.text("name", "sheaf");
  made.values.push_back(counted_text("yes") + raw<uint32_t>(7) + raw<uint8_t>(1));
  made.values.push_back(counted_text("small") + raw<uint32_t>(1) + raw<int8_t>(-3));
  made.values.push_back(counted_text("big") + raw<uint32_t>(10) + raw<uint64_t>(1));
  made.values.push_back(counted_text("huge") + raw<uint32_t>(10) + raw<uint64_t>(UINT64_MAX));
  made.values.push_back(counted_text("words") + raw<uint32_t>(9) + raw<uint32_t>(8) + raw<uint64_t>(2) +
                        counted_text("a") + counted_text(""));
  made.values.push_back(counted_text("scores") + raw<uint32_t>(9) + raw<uint32_t>(6) + raw<uint64_t>(2) +
                        raw(1.5f) + raw(-2.0f));
  made.values.push_back(counted_text("kinds") + raw<uint32_t>(9) + raw<uint32_t>(5) + raw<uint64_t>(2) +
                        raw<int32_t>(-1) + raw<int32_t>(6));
  for (const uint32_t version : {2U, 3U}) {
    made.version = version;
    const GgufFile file = open(made);
    EXPECT_EQ(file.version(), version);
    EXPECT_EQ(file.uint("count"), 7u);
    EXPECT_EQ(file.number("ratio"), 0.5);
    EXPECT_EQ(file.number("count"), 7.0);
    EXPECT_EQ(file.string("name"), "sheaf");
    EXPECT_TRUE(file.boolean("yes"));
    EXPECT_EQ(file.integer("small"), -3);
    EXPECT_EQ(file.uint("missing", 9), 9u);
    EXPECT_EQ(file.strings("words"), (std::vector<std::string_view>{"a", ""}));
    EXPECT_EQ(file.floats("scores"), (std::vector<float>{1.5f, -2.0f}));
    EXPECT_EQ(file.ints("kinds"), (std::vector<int64_t>{-1, 6}));
    expect_refusal([&] { file.uint("small"); }, {"\"small\"", "-3"});
    expect_refusal([&] { file.uint("huge"); }, {"\"huge\"", "too large"});
    expect_refusal([&] { file.uint("name"); }, {"\"name\"", "string", "integer"});
    expect_refusal([&] { file.strings("scores"); }, {"\"scores\"", "array of 2 f32", "array of strings"});
    expect_refusal([&] { file.string("missing"); }, {"\"missing\"", "missing"});
  }
}

TEST_F(Gguf, RefusesOtherFormats) {
  GgufBytes made;
  made.version = 1;
  refused(made, {"version 1"});
  made.version = 0x03000000;
  refused(made, {"big-endian"});
  made.version = 4;
  refused(made, {"version 4"});
  made = {};
  made.magic = "GGML";
  refused(made, {"not a GGUF file"});
  expect_refusal([&] { GgufFile::open(folder_.write("empty.gguf", "")); }, {"empty.gguf", "not a GGUF file"});
  expect_refusal([&] { GgufFile::open(folder_.path()); }, {"folder"});
  expect_refusal([&] { GgufFile::open(folder_.path() + "/none.gguf"); }, {"none.gguf", "no such file"});
}

TEST_F(Gguf, RefusesCountsTheFileCannotHold) {
  GgufBytes made;
  made.more_values = UINT64_MAX - 1;
  refused(made, {"metadata values", "more than fit in the file"});
  made = {};
  made.more_tensors = uint64_t{1} << 60;
  refused(made, {"tensors", "more than fit in the file"});
  made = {};
  made.values.push_back(raw<uint64_t>(UINT64_MAX) + "a key that is far shorter");
  refused(made, {"metadata key"});
  made = {};
  made.values.push_back(counted_text("s") + raw<uint32_t>(8) + raw<uint64_t>(UINT64_MAX - 8));
  refused(made, {"metadata string", "cut short"});
  made = {};
  made.values.push_back(counted_text("a") + raw<uint32_t>(9) + raw<uint32_t>(6) +
                        raw<uint64_t>((uint64_t{1} << 62) + 1));
  refused(made, {"\"a\"", "more than fit in the file"});
  made = {};
  made.values.push_back(counted_text("w") + raw<uint32_t>(9) + raw<uint32_t>(8) +
                        raw<uint64_t>(uint64_t{1} << 61));
  refused(made, {"\"w\"", "more than fit in the file"});
}

TEST_F(Gguf, RefusesWrongValues) {
  GgufBytes made;
  made.values.push_back(counted_text("odd") + raw<uint32_t>(13) + raw<uint64_t>(0));
  refused(made, {"\"odd\"", "unknown type 13"});
  made = {};
  made.values.push_back(counted_text("maybe") + raw<uint32_t>(7) + raw<uint8_t>(2));
  refused(made, {"\"maybe\"", "neither true nor false"});
  made = {};
  made.values.push_back(counted_text("deep") + raw<uint32_t>(9) + raw<uint32_t>(9) + raw<uint64_t>(0));
  refused(made, {"\"deep\"", "array of arrays"});
  made = {};
  made.u32("twice", 1);
  made.u32("twice", 1);
  refused(made, {"\"twice\"", "appears twice"});
  made = {};
  made.u32("general.alignment", 24);
  refused(made, {"alignment", "24"});
}

TEST_F(Gguf, RefusesTensorsThatCannotBe) {
  GgufBytes made;
  made.data.resize(256);
  const GgufBytes plain = made;
  made.tensor("t", {1, 1, 1, 1, 1}, 0, 0);
  refused(made, {"\"t\"", "5 dimensions"});
  made = plain;
  made.tensor("t", {4, 0}, 0, 0);
  refused(made, {"\"t\"", "empty dimension"});
  made = plain;
  made.tensor("t", {uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0);
  refused(made, {"\"t\"", "counted"});
  made = plain;
  made.tensor("t", {uint64_t{1} << 62}, 0, 0);
  refused(made, {"\"t\"", "counted"});
  made = plain;
  made.tensor("t", {33}, 8, 0);
  refused(made, {"\"t\"", "rows of 33 values", "Q8_0"});
  made = plain;
  made.tensor("t", {4}, 0, 16);
  refused(made, {"\"t\"", "offset 16"});
  made = plain;
  made.tensor("t", {65}, 0, 0);
  refused(made, {"\"t\"", "past the end of the file"});
  made = plain;
  made.tensor("t", {4}, 0, UINT64_MAX - 31);
  refused(made, {"\"t\"", "past the end of the file"});
  made = plain;
  made.tensor("first", {16}, 0, 0);
  made.tensor("second", {16}, 0, 32);
  refused(made, {"\"first\"", "\"second\"", "overlap"});
  made = plain;
  made.tensor("t", {4}, 0, 0);
  made.tensor("t", {4}, 0, 32);
  refused(made, {"\"t\"", "twice"});
  made = plain;
  made.tensor(std::string("bad\nname\x80", 9), {4}, 0, 1);
  refused(made, {"bad\\nname\\x80"});
}

TEST_F(Gguf, KeepsTypesItDoesNotRead) {
  GgufBytes made;
  made.data.resize(256);
  made.tensor("old", {32}, 7, 0);
  made.tensor("future", {32}, 99, 32);
  made.tensor("plain", {2, 3}, 0, 64);
  const GgufFile file = open(made);
  EXPECT_FALSE(file.find_tensor("old")->dtype);
  EXPECT_EQ(file.find_tensor("old")->type, "Q5_1");
  EXPECT_EQ(file.find_tensor("future")->type, "type 99");
  EXPECT_EQ(file.find_tensor("plain")->shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(file.find_tensor("none"), nullptr);
}

/// A whole tiny model whose bytes may be changed.
TEST_F(Gguf, ModelErrorsNameTheThing) {
  const std::string good = read_text(golden("llama_gguf/model.gguf"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = good;
    for (size_t at = changed.find(from); at != std::string::npos; at = changed.find(from, at + to.size()))
      changed.replace(at, from.size(), to);
    EXPECT_NE(changed, good) << from;
    return folder_.write("model.gguf", changed);
  };
  expect_refusal([&] { load_model(with("attn_q.weight", "attn_z.weight")); },
                 {"tensor blk.0.attn_q.weight is missing"});
  expect_refusal([&] { load_model(with("blk.1.", "blk.2.")); }, {"tensor blk.1.", "is missing"});
  expect_refusal([&] { load_model(with(counted_text("output.weight"), counted_text("outputs.weigh"))); },
                 {"outputs.weigh", "does not belong to the described model"});
  expect_refusal([&] { load_model(with("llama", "llomo")); },
                 {"architecture \"llomo\" is not supported", "qwen3"});
  expect_refusal([&] { load_model(with("llama.block_count", "llama.black_count")); },
                 {"llama.block_count", "missing"});
  // The type of a tensor follows its name, dimensions and sizes.
  std::string changed = good;
  const size_t at = changed.find("blk.0.ffn_up.weight") + 19 + 4 + 16;
  changed.replace(at, 4, raw<uint32_t>(25));  // I16: as many bytes as F16
  const std::string path = folder_.write("model.gguf", changed);
  expect_refusal([&] { load_model(path); }, {"blk.0.ffn_up.weight", "I16", "not supported", "Q4_K"});
  changed = good;
  const std::string sizes = raw<uint64_t>(32) + raw<uint64_t>(40);
  const size_t shape = changed.find(sizes, changed.find("blk.0.ffn_up.weight"));
  changed.replace(shape, 16, raw<uint64_t>(40) + raw<uint64_t>(32));
  const std::string turned = folder_.write("model.gguf", changed);
  expect_refusal([&] { load_model(turned); }, {"blk.0.ffn_up.weight", "[32, 40]", "[40, 32]"});
}

}  // namespace
}  // namespace sheaf

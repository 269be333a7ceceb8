// Weights that are not finite, and numbers that overflow: the run ends with what happened and what to do, and
// no answer is made of them.
#include <gtest/gtest.h>

#include "tests/app/program.h"
#include "tests/model/gguf_bytes.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran, test::run_sheaf;

constexpr uint16_t kNan = 0x7fc0, kInfinity = 0x7f80;     // bf16
constexpr uint16_t kHuge = 0x7f62, kHugeSquare = 0x6904;  // 3e38; 1e25, whose square overflows
constexpr int kBoxes = 120, kHidden = 16, kZebra = 90;

class NotFiniteWeights : public testing::Test {
 protected:
  void SetUp() override {
    model_ = test::make_tiny_model(scratch_);
    std::string lines;
    for (int i = 0; i < kBoxes; ++i)
      lines += json{{"n", i}, {"c", (i == kZebra ? "Zebra " : "Box ") + std::to_string(i)}, {"q", "What?"}}
                   .dump() +
               "\n";
    scratch_.write("rows.jsonl", lines);
    job_ = scratch_.write(
        "job.yaml", "model: {path: " + model_ +
                        ", chat: plain}\ninput: {path: " + scratch_.path("rows.jsonl") +
                        ", id: n, context: c, question: q}\n"
                        "task: {kind: ask, instruction: Tell}\n"
                        "method: {name: ippd, documents: 1, max_value_tokens: 4}\n"
                        "engine: {device: cpu, threads: 1, window: 2, tokens_per_step: 16}\noutput: {path: " +
                        scratch_.path("out") + "}\n");
    file_ = model_ + "/model-00001-of-00001.safetensors";
  }

  /// Sets values of a tensor.
  void set(const std::string& tensor, size_t first, size_t count, uint16_t value) {
    std::string bytes = read_text(file_);
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    const json about = json::parse(bytes.substr(8, header)).at(tensor);
    const size_t at = 8 + header + about.at("data_offsets")[0].get<size_t>();
    for (size_t i = first; i < first + count; ++i) bytes.replace(at + 2 * i, 2, raw(value));
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes;
  }
  Ran run(const std::string& more = "") { return run_sheaf(scratch_, "run " + job_ + " --quiet" + more); }
  static void says(const Ran& ran, int exit_code, const std::vector<std::string>& parts) {
    EXPECT_EQ(ran.exit_code, exit_code) << ran.err;
    for (const std::string& part : parts) EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  }

  TempFolder scratch_;
  std::string model_, job_, file_;
};

TEST_F(NotFiniteWeights, AreRefusedInEveryPrecision) {
  EXPECT_EQ(run(" --restart").exit_code, 0);
  const std::string good = read_text(file_);
  const std::string workload = scratch_.write(
      "work.jsonl",
      json{{"name", "w"}, {"instruction_ids", {9}}}.dump() + "\n" +
          json{{"context_ids", {1, 2}}, {"questions", {{{"ids", {3}}, {"answer_tokens", 1}}}}}.dump() + "\n");
  for (const auto& [tensor, at, value] : {std::tuple{"model.embed_tokens.weight", 256u * kHidden, kNan},
                                          {"lm_head.weight", 0u, kInfinity},
                                          {"model.layers.0.mlp.down_proj.weight", 5u, kNan},
                                          {"model.layers.0.input_layernorm.weight", 15u, kInfinity}}) {
    set(tensor, at, 1, value);
    for (const char* how :
         {"", " --set model.dtype=int16", " --set model.dtype=int8", " --set engine.kernels=reference"})
      says(run(std::string(" --restart") + how), 2,
           {file_, std::string("tensor ") + tensor, value == kNan ? "NaN" : "an infinity",
            "earlier checkpoint"});
    EXPECT_EQ(run_sheaf(scratch_, "inspect " + model_).exit_code, 0);
    says(run_sheaf(scratch_, "bench --device cpu --model " + model_ + " " + workload), 2, {file_, tensor});
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << good;
  }
}

TEST_F(NotFiniteWeights, NumbersThatOverflowEndTheRun) {
  set("model.norm.weight", 0, kHidden, kHuge);
  for (const char* how :
       {"", " --set model.dtype=int16", " --set model.dtype=int8", " --set engine.kernels=reference",
        " --set method.temperature=1", " --set engine.device=cpu:1"})
    says(run(std::string(" --restart") + how), 3, {"not finite", "overflow", "model.dtype", "rows are kept"});
}

TEST_F(NotFiniteWeights, RowsBeforeAnOverflowAreKept) {
  set("model.embed_tokens.weight", 'Z' * kHidden, kHidden, kHugeSquare);
  size_t before = 60;
  for (int i = 0; i < 2; ++i) {  // the second resumes, and ends in the same place
    says(run(), 3, {"not finite"});
    const auto rows = test::read_json_lines(read_text(scratch_.path("out") + "/rows-00000.jsonl.part"));
    EXPECT_GE(rows.size(), before);
    EXPECT_LE(rows.size(), static_cast<size_t>(kZebra));
    for (size_t r = 0; r < rows.size(); ++r) EXPECT_EQ(rows[r].at("id"), r);
    before = rows.size();
  }
}

}  // namespace
}  // namespace sheaf

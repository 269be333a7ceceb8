// The words of a job's enums, and devices.
#include "core/job/words.h"

#include <gtest/gtest.h>
#include <set>

#include "core/base/error.h"
#include "core/job/device.h"

namespace sheaf {
namespace {

template <class Enum>
void expect_words(const std::vector<std::string>& words) {
  EXPECT_EQ(all_words<Enum>(), words);
  std::set<Enum> values;
  for (const std::string& word : words) {
    const auto value = read_word<Enum>(word);
    ASSERT_TRUE(value) << word;
    EXPECT_EQ(word_of(*value), word);
    values.insert(*value);
  }
  EXPECT_EQ(values.size(), words.size());
  EXPECT_FALSE(read_word<Enum>(""));
  EXPECT_FALSE(read_word<Enum>("something else"));
}

TEST(WordsOfJobFiles, AreReadAndWrittenAlike) {
  expect_words<TaskKind>({"extract", "ask", "chat"});
  expect_words<TooLong>({"refuse", "truncate", "split"});
  expect_words<ScoreKind>({"dense", "sparse", "probability", "logit"});
  expect_words<ValueSight>({"independent", "positional"});
  expect_words<Stacking>({"isolated", "joint"});
  expect_words<KeyForm>({"name", "marker"});
  expect_words<ValueEnd>({"literal", "line"});
  expect_words<OptionChoice>({"likeliest", "greedy"});
  expect_words<Precision>({"auto", "f32", "int16", "int8", "bf16", "fp8"});
  expect_words<WeightStorage>({"auto", "expanded", "packed"});
  expect_words<CpuKernels>({"auto", "reference"});
  expect_words<OutputFormat>({"jsonl", "parquet", "arrow", "openai-batch"});
  expect_words<Aggregate>({"max", "mixture", "product"});
  EXPECT_EQ(word_of(TaskKind::none), "");
}

TEST(Device, IsReadAndWritten) {
  using Kind = Device::Kind;
  const auto parsed = [](const char* text) { return parse_device(text, "--device"); };
  EXPECT_EQ(parsed("auto"), Device{Kind::automatic});
  EXPECT_EQ(parsed("cpu"), Device{Kind::cpu});
  EXPECT_EQ(parsed("cuda"), Device{Kind::cuda});
  EXPECT_EQ(parsed("cuda:0"), (Device{Kind::cuda, {0}}));
  EXPECT_EQ(parsed("7"), (Device{Kind::cuda, {7}}));
  EXPECT_EQ(parsed("cuda:0,2,5"), (Device{Kind::cuda, {0, 2, 5}}));
  EXPECT_EQ(parsed("cuda:all"), (Device{Kind::cuda, {}, true}));
  EXPECT_EQ(parsed("cpu:3"), (Device{Kind::cpu, {}, false, 3}));
  EXPECT_EQ(parsed("cpu:1"), Device{Kind::cpu});
  for (const char* text :
       {"auto", "cpu", "cpu:2", "cuda", "cuda:0", "cuda:12", "cuda:0,0", "cuda:0,2,5", "cuda:all"})
    EXPECT_EQ(device_text(parsed(text)), text);
  EXPECT_EQ(device_text(parsed("12")), "cuda:12");
}

TEST(Device, UnknownDevicesAreRefused) {
  for (const std::string text :
       {"", "cda", "gpu", "CPU", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda1", "cuda:99999999", "-1",
        " cpu", "cpu:", "cpu:0", "cpu:999", "cpu:all", "cuda:0,", "cuda:,1", "all"}) {
    try {
      parse_device(text, "job.yaml:3: engine.device");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "job.yaml:3: engine.device: unknown device \"" + text +
                                  "\"; use auto, cpu, cpu:N, cuda, cuda:all, cuda:N or cuda:N,M");
    }
  }
}

}  // namespace
}  // namespace sheaf

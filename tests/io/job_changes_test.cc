#include "io/base/job_changes.h"

#include <gtest/gtest.h>

namespace sheaf {
namespace {

using nlohmann::ordered_json;

ordered_json file(int bytes, const char* sum = "a") {
  return {{"bytes", bytes}, {"sha256", sum}};
}

TEST(JobChanges, AreNamedKeyByKey) {
  const ordered_json before{
      {"corpus", {{"a.jsonl", file(10)}, {"b.jsonl", file(20)}}},
      {"model", {{"model.gguf", file(5)}}},
      {"adapter", {{"adapter_config.json", file(1)}, {"adapter_model.safetensors", file(2)}}}};
  EXPECT_EQ(describe_changes(before, before), "");
  const auto with = [&](const char* part, ordered_json value) {
    ordered_json now = before;
    now[part] = std::move(value);
    return describe_changes(before, now);
  };
  EXPECT_EQ(with("corpus", {{"a.jsonl", file(15)}, {"b.jsonl", file(20)}, {"c.jsonl", file(1)}}),
            "the corpus grew: a.jsonl grew from 10 to 15 bytes, c.jsonl is new");
  EXPECT_EQ(with("corpus", {{"a.jsonl", file(10)}}), "the corpus shrank: b.jsonl is gone");
  EXPECT_EQ(with("corpus", {{"a.jsonl", file(10, "b")}, {"b.jsonl", file(20)}}),
            "the corpus changed: a.jsonl has other contents of the same size");
  EXPECT_EQ(with("corpus", {{"x.jsonl", file(10)}}),
            "the corpus has changed: x.jsonl instead of a.jsonl, b.jsonl");
  EXPECT_EQ(with("model", {{"other.gguf", file(5)}}),
            "the model has changed: other.gguf instead of model.gguf");
  EXPECT_EQ(with("adapter", nullptr), "the adapter was left out");
  EXPECT_EQ(with("adapter", {{"adapter_config.json", file(1)}, {"adapter_model.safetensors", file(2, "b")}}),
            "the adapter changed: adapter_model.safetensors has other contents of the same size");
  ordered_json none = before;
  none["adapter"] = nullptr;
  EXPECT_EQ(describe_changes(none, before),
            "the adapter was added: adapter_config.json, adapter_model.safetensors");
}

}  // namespace
}  // namespace sheaf

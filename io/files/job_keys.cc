#include "io/files/job_keys.h"

#include <algorithm>

#include "core/tokenizer/chat_template.h"
#include "io/files/job_file.h"

namespace sheaf {
namespace {

/// What is read in a way of its own.
void add_own(KeyAsked& key) {
  key.path = key.path || key.name.ends_with(".path");
  if (key.name == "engine.device") key.words = {"auto", "cpu", "cuda"};
  if (key.name != "model.chat") return;
  key.words = chat_template_names();
  key.words.insert(key.words.begin(), "auto");
  key.path = true;
}

}  // namespace

std::vector<KeyAsked> job_keys() {
  const KeysAsked asked;
  read_job("a job",
           parse_yaml("a job",
                      "{model: {path: m}, input: {path: i, context: c, question: q}, task: {kind: ask}, "
                      "method: {name: standard}, output: {path: o}}"),
           {}, false);
  std::vector<KeyAsked> keys;
  for (const KeyAsked& key : asked.keys()) {
    const auto known = std::ranges::find(keys, key.name, &KeyAsked::name);
    const bool is_section = std::ranges::any_of(
        asked.keys(), [&](const KeyAsked& other) { return other.name.starts_with(key.name + "."); });
    if (known != keys.end())
      known->path = known->path || key.path;
    else if (!is_section)
      keys.push_back(key);
  }
  for (KeyAsked& key : keys) add_own(key);
  return keys;
}

}  // namespace sheaf

#include "io/files/job_keys.h"

#include <algorithm>

#include "io/base/yaml_reader.h"
#include "io/files/job_file.h"

namespace sheaf {

std::vector<std::string> job_keys() {
  const KeysAsked asked;
  read_job("a job",
           parse_yaml("a job",
                      "{model: {path: m}, input: {path: i, context: c, question: q}, task: {kind: ask}, "
                      "method: {name: standard}, output: {path: o}}"),
           {}, false);
  std::vector<std::string> keys;
  for (const std::string& key : asked.keys())
    if (std::ranges::find(keys, key) == keys.end() &&
        std::ranges::none_of(asked.keys(),
                             [&](const std::string& other) { return other.starts_with(key + "."); }))
      keys.push_back(key);
  return keys;
}

}  // namespace sheaf

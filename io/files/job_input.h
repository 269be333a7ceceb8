#pragma once
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

#include "core/job/job.h"
#include "io/base/yaml_reader.h"

namespace sheaf {

constexpr Range<int64_t> kFromZero{0, std::numeric_limits<int64_t>::max()};

/// Reads the input section of a job of the task `kind`. Without `files` the corpus may be missing.
void read_input(YamlMap map, Job::Input& input, TaskKind kind, bool files);

/// Reads the word of an enum.
template <class Enum>
void read_choice(YamlMap& map, std::string_view key, Enum& target) {
  std::string word(word_of(target));
  map.choice(key, word, all_words<Enum>());
  if (const auto value = read_word<Enum>(word)) target = *value;
}

/// Ends the instruction with the examples that the input section asks for, as they would stand in the prompt.
void add_examples(Job& job);

// What every section is checked for; each refuses with file, line and key.

/// `advice` ends the message.
void check_exists(const YamlMap& map, std::string_view key, const std::string& path,
                  const std::string& advice = {});
/// A key that was given and means nothing in this job is a mistake, not a detail to pass over.
void only_for(const YamlMap& map, std::initializer_list<std::string_view> keys, std::string_view what);
void needs(const YamlMap& map, std::string_view key, std::string_view what);

}  // namespace sheaf

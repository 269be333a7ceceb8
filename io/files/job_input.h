#pragma once
#include <string>
#include <string_view>

#include "core/job/job.h"
#include "io/base/yaml_reader.h"

namespace sheaf {

/// Reads the input section of a job whose task is known. Without `files` the corpus may be missing.
void read_input(YamlMap map, Job& job, bool files);

/// Ends the instruction with the examples that the input section asks for, as they would stand in the prompt.
void add_examples(Job& job);

// What every section is checked for; each refuses with file, line and key.

/// `advice` ends the message.
void check_exists(const YamlMap& map, std::string_view key, const std::string& path,
                  const std::string& advice = {});
void needs(const YamlMap& map, std::string_view key, std::string_view what);

}  // namespace sheaf

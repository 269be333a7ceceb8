#pragma once
#include <ctime>
#include <string>
#include <string_view>

#include "core/job/job.h"
#include "io/base/yaml_reader.h"

// Paths that job files name.

namespace sheaf {

/// The path of a model's files, or the name of a shape (qwen3-8b), for estimates and made-up records. Files
/// come first. `name` is the key for messages.
std::string model_path(const YamlNode& node, std::string_view name);

/// output.path of a job file, with {date} ("2026-03-01"), {time} ("23-05-09", both local) and {job} (the
/// file's name without its ending) filled in. Refuses other names in braces.
void read_output_path(const YamlNode& node, const std::string& job_file, std::time_t now,
                      Job::Output& output);

/// Refuses a path that does not exist, with file, line and key. `advice` ends the message.
void check_exists(const YamlMap& map, std::string_view key, const std::string& path,
                  const std::string& advice = {});

/// Refuses a job whose store of keys and values and whose output folder lie one inside the other, through
/// links too: a restart moves and removes folders of the run, and a full store removes files of its own.
void check_store_apart(const Job& job);

}  // namespace sheaf

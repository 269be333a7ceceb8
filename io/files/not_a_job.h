#pragma once
#include <string>

#include "io/base/yaml_reader.h"

namespace sheaf {

/// Refuses what people give in place of a job file, by its name and first bytes: a folder, a model, a corpus.
/// Says what it is, and which command or key of a job wants it.
void check_is_job(const std::string& path);

/// The same by the keys of a YAML or JSON file: an evaluation, a schema, the configuration of a model.
void check_is_job(const std::string& path, const YamlNode& root);

}  // namespace sheaf

#pragma once
#include <string>
#include <string_view>

#include "io/base/yaml_reader.h"

namespace sheaf {

/// The path of a model's files, or the name of a shape (qwen3-8b), for estimates and made-up records. Files
/// come first. `name` is the key for messages.
std::string model_path(const YamlNode& node, std::string_view name);

}  // namespace sheaf

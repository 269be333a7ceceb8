#pragma once
#include <string>

#include "core/tokenizer/chat_template.h"

namespace sheaf {

/// Reads a chat template from a YAML file whose keys are the fields of ChatTemplate. Refuses, with file and
/// line, what cannot be one.
ChatTemplate read_chat_file(const std::string& path);

}  // namespace sheaf

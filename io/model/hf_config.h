#pragma once
#include <string>

#include "io/model/family.h"

namespace sheaf {

/// Reads a Hugging Face config.json; refuses, by name, what sheaf would compute differently.
FileConfig read_hf_config(const std::string& path);

}  // namespace sheaf

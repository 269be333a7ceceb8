#pragma once
#include "io/model/family.h"
#include "io/model/gguf.h"

namespace sheaf {

/// Reads the model's description from a GGUF file's metadata and rope tensors; refuses, by name, what sheaf
/// would compute differently.
FileConfig read_gguf_config(const GgufFile& gguf);

}  // namespace sheaf

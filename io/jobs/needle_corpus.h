#pragma once
#include "io/datasets/convert.h"
#include "io/datasets/needle.h"

namespace sheaf {

/// Writes the corpus of make_needles() from a book. `model`: counts lengths in its tokens; empty: in words.
Converted write_needles(const std::string& book, const std::string& to, const std::string& model,
                        NeedleOptions needle);

}  // namespace sheaf

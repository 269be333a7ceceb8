#pragma once
#include <string>

#include "io/run_folder/manifest.h"

namespace sheaf {

/// What a run that is not finished has committed so far: as its manifest, with the files that still grow
/// (.part) as far as they are committed. Refuses a folder without a run, and a journal that sheaf did not
/// write.
Manifest committed_so_far(const std::string& folder);

}  // namespace sheaf

#pragma once
#include <atomic>
#include <memory>

#include "core/job/job.h"
#include "io/base/scratch_file.h"

namespace sheaf {

/// Copies standard input to a file near the job's output, so that it can be read as often as a file can, and
/// puts its path, size and sum into `job`. Nothing where `stop` was set meanwhile.
std::unique_ptr<ScratchFile> copy_standard_input(Job& job, const std::atomic<bool>& stop);

}  // namespace sheaf

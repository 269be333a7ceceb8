#pragma once
#include "io/jobs/run_job.h"

namespace sheaf {

/// Runs a job whose output.path is a URI: in its local folder (output.work), with journal and resume as ever,
/// and then publishes the finished run.
RunEnd run_stored_job(const Job& asked, const RunSettings& settings, RunListener& listener);

/// The local folder of such a job.
std::string work_folder(const Job& job);

}  // namespace sheaf

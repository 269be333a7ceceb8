#pragma once

#include "app/commands.h"
#include "io/files/job_file.h"
#include "io/jobs/earlier_runs.h"
#include "io/jobs/finished_run.h"
#include "io/jobs/opened_job.h"

namespace sheaf {

// Arguments that several commands have.

Argument set_option(std::vector<std::string>& overrides, const std::string& help);
Argument device_option(std::string& device);
Argument seed_option(uint64_t& seed, const std::string& help);
/// Where the corpus and the schema of a run are now.
Argument place_options(RunPlaces& places);

/// Which earlier runs answers are taken from.
Argument reuse_options(ReuseWish& wish);

/// The options that every command on a job has.
struct JobOptions {
  std::string path;
  std::vector<std::string> overrides;
  int64_t limit = 0;
  int32_t threads = -1;
  std::string device;
  bool reproducible = false;
  bool json = false;
  bool quiet = false;

  Argument arguments();
  /// The job file with the options applied.
  Job read(JobReading reading = {}) const;
};

/// Says what an opened job has to say and takes in standard input where that is the corpus. False when
/// interrupted.
bool take_input(OpenedJob& opened);

}  // namespace sheaf

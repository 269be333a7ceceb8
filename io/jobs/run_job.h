#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/job/job.h"

namespace sheaf {

/// How a job is run, beside what it says itself.
struct RunSettings {
  bool restart = false;     ///< throw away what the output folder holds
  bool quiet = false;       ///< no progress, no notices
  std::string shard;        ///< "0/4"; empty: all of the corpus
  std::string log;          ///< a file for lines of progress; empty: none
  std::string max_rejects;  ///< "100" or "2.5%"; empty: any number
};

struct RunEnd {
  int exit_code = 0;
  bool was_finished = false;      ///< before this call, which did nothing then
  nlohmann::ordered_json report;  ///< null where it was interrupted
};

/// Runs a job as it is `asked` for into its output folder, or goes on with it. Interrupts are as
/// stop_in_order() sets them up.
RunEnd run_job(const Job& asked, const RunSettings& settings);

}  // namespace sheaf

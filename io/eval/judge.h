#pragma once
#include <optional>
#include <string>

#include "io/eval/scores.h"
#include "io/jobs/run_job.h"

namespace sheaf {

/// What a judge model says of the attribute values of a run.
struct Judgements {
  std::optional<double> llm_f1;  ///< nothing where no reply could be read
  int64_t asked = 0;             ///< documents
  int64_t unread = 0;            ///< replies without judgements
};

struct JudgedRun {
  std::optional<Judgements> judgements;  ///< none where it was interrupted
  std::string interrupted;               ///< what to tell the user then
};

/// Asks the judge about every document of a run (extract), as the HPD paper words it, and counts. The judge's
/// own run lies in the folder judge of the run's folder and resumes where it stopped, unless it is of other
/// values.
JudgedRun judge_run(FileLayer& files, const std::string& judge_model, const EvalCell& cell,
                    const AskedItems& asked, bool restart, RunListener& listener);

/// The judgements in the rows that a judge wrote into `folder`.
Judgements count_replies(const std::string& folder, int64_t asked);

}  // namespace sheaf

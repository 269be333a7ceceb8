#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/job/job.h"
#include "core/task/record.h"

namespace sheaf {

// A job's prompts for a service elsewhere, and its replies as a run.

struct ExportSettings {
  std::string to;  ///< the JSON lines to write
  std::string
      judge;  ///< folder of a finished run whose values a judge is asked about; empty: the job's prompts
  nlohmann::ordered_json body = nlohmann::ordered_json::object();  ///< keys of every request, such as "model"
};

struct ExportEnd {
  int64_t records = 0, requests = 0;  ///< in the file
  int64_t bytes = 0;
  int64_t without_row = 0;           ///< judge: records that the run has no row of
  int64_t rejected = 0;              ///< records that cannot be asked about
  std::vector<std::string> rejects;  ///< place and reason of the first of them
  std::vector<std::string> notices;
  bool finished = false;  ///< false: interrupted; nothing is written
};

/// Writes a request for every record (extract) or question (ask) of a job, as an OpenAI batch file: the job's
/// own prompts, a JSON object with all values for extract. Its model is not opened. Records whose id an
/// earlier one has are rejected, as replies could not be told apart.
ExportEnd export_requests(const Job& job, const ExportSettings& settings);

struct ImportSettings {
  std::vector<std::string> replies;  ///< files of BatchReplies
  std::string to;                    ///< the run's folder; with `judge` a file of JSON lines
  bool judge = false;                ///< replies of a judge, for `sheaf score --judgements`
  bool restart = false;              ///< replace what the folder holds
};

struct ImportEnd {
  int64_t rows = 0;
  int64_t rejected = 0;              ///< records without a usable reply, and replies of no use
  std::vector<std::string> rejects;  ///< place and reason of the first of them
  std::string notice;                ///< empty: none
  bool finished = false;             ///< false: interrupted
};

/// Makes the replies to export_requests() a finished run of the job, as if its model had given them. A record
/// whose reply is missing, repeated, failed or unreadable is a reject with its reason; so is a reply that
/// belongs to no record. Refuses where no reply can be used.
ImportEnd import_replies(const Job& job, const ImportSettings& settings);

}  // namespace sheaf

#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sheaf {

/// The sections of a job for a corpus that nobody has described yet, as YAML to begin with.
struct JobProposal {
  std::string job;     ///< `input` and `task`; empty where no column can be read
  std::string schema;  ///< the file that the job names as schema.yaml; empty: the job asks questions
};

/// Guesses what the columns of a corpus are for, by their names and by what its first records hold: the id,
/// the category, the texts, and columns whose values stand in the texts and so make a first schema.
/// `format`, `about` and `sample` are those of describe_corpus().
JobProposal propose_job(const std::string& path, const std::string& format,
                        const nlohmann::ordered_json& about, const std::vector<nlohmann::json>& sample);

}  // namespace sheaf

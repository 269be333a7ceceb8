#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// Whether a file with this beginning has records rather than one JSON object: a list, or an object on a line
/// and more after it.
bool begins_like_records(std::string_view beginning);

/// What input.format must be for this file: `jsonl` for a .json file with records, which `auto` does not
/// take; nothing for a .json file with one object, which is no corpus; else `auto`.
std::string wanted_format(const std::string& path);

/// A corpus in a few lines: {"format", "files", "records", "columns": [{"name", "type"}], "first": {…}} with
/// long values shortened, and {"unreadable": {"records", "first"}} where some of the records that were looked
/// at would be rejected. Refuses what is no corpus. `format`: as input.format has it. `sample`: gets the
/// first records, of which long texts are cut.
nlohmann::ordered_json describe_corpus(const std::string& path, const std::string& format = "auto",
                                       std::vector<nlohmann::json>* sample = nullptr);

/// The sections of a job for a corpus that nobody has described yet, as YAML to begin with.
struct JobProposal {
  std::string job;     ///< `input`, `task`, perhaps `method`; empty where no column can be read
  std::string schema;  ///< the file that the job names as schema.yaml; empty: the job asks questions
};

/// Guesses what the columns of a corpus are for, by their names and by what its first records hold: the id,
/// the category, the texts, and columns whose values stand in the texts and so make a first schema.
/// `format`, `about` and `sample` are those of describe_corpus().
JobProposal propose_job(const std::string& path, const std::string& format,
                        const nlohmann::ordered_json& about, const std::vector<nlohmann::json>& sample);

}  // namespace sheaf

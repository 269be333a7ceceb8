#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sheaf {

/// A corpus in a few lines: {"format", "files", "records", "columns": [{"name", "type"}], "first": {…}} with
/// long values shortened. Refuses what is no corpus. `format`: as input.format has it. `sample`: gets the
/// first records, of which long texts are cut.
nlohmann::ordered_json describe_corpus(const std::string& path, const std::string& format = "auto",
                                       std::vector<nlohmann::json>* sample = nullptr);

}  // namespace sheaf

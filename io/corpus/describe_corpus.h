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

}  // namespace sheaf

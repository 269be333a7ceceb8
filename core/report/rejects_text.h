#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sheaf {

// What people are told of rejected records. `reasons`: `reject_reasons` of a report, the most common first.

/// The most common reasons, each with an example: "9 × the line is not a JSON object (items.jsonl:3)".
std::vector<std::string> common_reasons(const nlohmann::ordered_json& reasons);

/// Lines for the terminal: how many of the records, why, and `where` all of them are.
std::string rejects_text(int64_t rejects, int64_t records, const nlohmann::ordered_json& reasons,
                         const std::string& where);

/// Where half of the records or more were rejected, a sentence that says so; else empty.
std::string rejects_warning(int64_t rejects, int64_t records);

/// Refuses a corpus of which no record can be used: it is empty, or every record was rejected. `where` all
/// rejects are, if they are anywhere.
void check_not_lost(const std::string& corpus, int64_t rejects, int64_t records,
                    const nlohmann::ordered_json& reasons, const std::string& where = "");

}  // namespace sheaf

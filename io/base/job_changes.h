#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sheaf {

/// What changed between two fingerprints (job_fingerprint()), in words: "the corpus grew:
/// items.jsonl grew from 380 to 420 bytes; method.seed was 0 and is now 4". Empty: nothing.
std::string describe_changes(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now);

/// The keys, dotted, whose values differ, each with both: "job.method.documents was 6 and is 4".
std::vector<std::string> list_changes(const nlohmann::ordered_json& before,
                                      const nlohmann::ordered_json& now);

/// The keys, dotted, whose values differ between two runs: "job.method.documents is 6 in the first and 4 in
/// the other".
std::vector<std::string> list_differences(const nlohmann::ordered_json& first,
                                          const nlohmann::ordered_json& other);

}  // namespace sheaf

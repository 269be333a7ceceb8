#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace sheaf {

/// What changed between two fingerprints (job_fingerprint()), in words: "the corpus changed: items.jsonl has
/// 420 bytes instead of 380; method.seed was 0 and is now 4". Empty: nothing.
std::string describe_changes(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now);

}  // namespace sheaf

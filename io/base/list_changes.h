#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sheaf {

/// The keys, dotted, whose values differ, each with both: "job.method.documents was 6 and is 4".
std::vector<std::string> list_changes(const nlohmann::ordered_json& before,
                                      const nlohmann::ordered_json& now);

}  // namespace sheaf

#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace sheaf {

/// Gives the keys of a report of version 2 their present names.
void update_report(nlohmann::ordered_json& report);

/// Refuses what is not a whole report of this version, naming `source` and the key: its file may have been
/// damaged or written by somebody else. What passes can be shown, added up and compared without further
/// checks.
void check_report(const nlohmann::ordered_json& report, const std::string& source);

}  // namespace sheaf

#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace sheaf {

/// Refuses what is not a whole report of this version, naming `source` and the key: its file may have been
/// damaged or written by somebody else. What passes can be shown, added up and compared without further
/// checks.
void check_report(const nlohmann::ordered_json& report, const std::string& source);

}  // namespace sheaf

#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sheaf {

/// One thing that the machine or the program has or lacks.
struct MachineFact {
  std::string name;  ///< "memory"
  std::string text;  ///< for a person
  std::string fix;   ///< what to do; empty: nothing is missing
  nlohmann::ordered_json details = nlohmann::ordered_json::object();
};

/// What this machine offers to sheaf, and what this build can use of it. `output`: the folder that rows would
/// go to, there or not yet.
std::vector<MachineFact> examine_machine(const std::string& output);

/// Name and version, and what the program was built with.
std::string version_text();

MachineFact examine_libraries();

}  // namespace sheaf

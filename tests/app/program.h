#pragma once
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <vector>

#include "tests/files.h"

namespace sheaf::test {

struct Ran {
  int exit_code = -1;
  std::string out;  ///< standard output
  std::string err;
};

inline std::vector<nlohmann::json> read_json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

/// The exit code that a waited-for process left, or 128 and the signal that ended it.
inline int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Runs a command of the shell from the project's root.
inline Ran run_shell(const TempFolder& scratch, const std::string& command) {
  const std::string line =
      "{ " + command + "; } >" + scratch.path("stdout") + " 2>" + scratch.path("stderr") + " </dev/null";
  const int code = exit_code_of(std::system(line.c_str()));
  return {code, read_text(scratch.path("stdout")), read_text(scratch.path("stderr"))};
}

/// Runs `sheaf ARGUMENTS` through the shell, from the project's root or another `folder`.
inline Ran run_sheaf(const TempFolder& scratch, const std::string& arguments,
                     const std::string& folder = ".") {
  return run_shell(scratch, "cd " + folder + " && " + SHEAF_BINARY + " " + arguments);
}

/// A copy of the build's model of random weights with one token a byte, on which a job takes no time; gives
/// back its folder.
inline std::string make_tiny_model(const TempFolder& scratch) {
  std::filesystem::copy(SHEAF_TINY_MODEL, scratch.path("model"));
  return scratch.path("model");
}

}  // namespace sheaf::test

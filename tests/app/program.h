#pragma once
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <vector>

namespace sheaf::test {

struct Ran {
  int exit_code = -1;
  std::string out;  ///< standard output
  std::string err;
};

/// A folder of the test's own, removed when it ends.
class Scratch {
 public:
  explicit Scratch(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "sheaf-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no scratch folder");
    path_ = name;
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }

 private:
  std::string path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::vector<nlohmann::json> read_json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

/// Runs `sheaf ARGUMENTS` through the shell, from the project's root or another `folder`.
inline Ran run_sheaf(const Scratch& scratch, const std::string& arguments, const std::string& folder = ".") {
  const std::string command = "cd " + folder + " && " + SHEAF_BINARY + " " + arguments + " >" +
                              scratch.file("stdout") + " 2>" + scratch.file("stderr") + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(scratch.file("stdout")),
          read_text(scratch.file("stderr"))};
}

/// A copy of the build's model of random weights with one token a byte, on which a job takes no time; gives back
/// its folder.
inline std::string make_tiny_model(const Scratch& scratch) {
  std::filesystem::copy(SHEAF_TINY_MODEL, scratch.file("model"));
  return scratch.file("model");
}

}  // namespace sheaf::test

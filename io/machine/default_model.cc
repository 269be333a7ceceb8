#include "io/machine/default_model.h"

#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "io/base/paths.h"
#include "io/base/program_file.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInClone = "build/models/smollm2.gguf";
constexpr const char* kInstalled = "models/smollm2.gguf";

struct Fetcher {
  fs::path script, model;  ///< the script, and where the shipped jobs look for the model
};

Fetcher find_fetcher() {
  if (const fs::path script = find_installed_file("get-model"); !script.empty())
    return {script, script.parent_path() / kInstalled};
  if (const fs::path script = find_above_program("tools/get-model"); !script.empty())
    return {script, script.parent_path().parent_path() / kInClone};
  refuse(
      "get-model: the script that fetches the model is neither in share/sheaf nor in tools above {}; install "
      "sheaf again",
      program_file());
}

}  // namespace

DefaultModel find_default_model() {
  std::error_code ignored;
  if (fs::is_regular_file(kInClone, ignored)) return {kInClone, true};
  const std::string installed = find_installed_file(kInstalled);
  return installed.empty() ? DefaultModel{kInClone, false} : DefaultModel{installed, true};
}

std::vector<std::string> default_model_command(const std::string& to, const std::string& from) {
  const Fetcher fetcher = find_fetcher();
  const char* python = std::getenv("SHEAF_PYTHON");  // the wheel's own: the one that has its pip
  std::vector<std::string> words = {python && *python ? python : "python3", fetcher.script.string(), "--to",
                                    to.empty() ? fetcher.model.string() : to};
  if (!from.empty()) words.insert(words.end(), {"--from", from});
  return words;
}

}  // namespace sheaf

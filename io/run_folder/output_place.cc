#include "io/run_folder/output_place.h"

#include <filesystem>
#include <fnmatch.h>
#include <set>

#include "core/base/error.h"
#include "io/base/file_layer.h"
#include "io/base/named_output.h"
#include "io/base/store_uri.h"
#include "io/corpus/corpus.h"
#include "io/run_folder/manifest.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

/// Whether a look through `folder` comes to `out`; hidden folders are passed over.
bool is_found_in(const fs::path& folder, const fs::path& out) {
  auto at = out.begin();
  for (const fs::path& part : folder) {
    if (at == out.end() || *at != part) return false;
    ++at;
  }
  for (; at != out.end(); ++at)
    if (is_passed_over(at->string())) return false;
  return true;
}

/// Whether a file that a run writes into `out` matches the pattern.
bool is_matched(const std::string& pattern, const fs::path& out) {
  fs::path fixed, rest;  // up to the first wildcard, and from there on
  for (const fs::path& part : fs::path(pattern))
    if (rest.empty() && part.string().find_first_of("*?[") == std::string::npos)
      fixed /= part;
    else
      rest /= part;
  const std::string whole = (fs::path(real_path(fixed.empty() ? "." : fixed.string())) / rest).string();
  const auto matches = [&](const std::string& name) {
    return ::fnmatch(whole.c_str(), (out / name).c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
  };
  return matches("rejects.jsonl") || std::ranges::any_of(kRowsEndings, [&](std::string_view ending) {
           return matches(fmt::format("rows-00000{}", ending));
         });
}

}  // namespace

void check_output_apart(const Job& job) {
  if (job.input.table || job.input.path == "-" || is_uri(job.input.path)) return;
  const fs::path out = real_path(job.output.path);
  const auto refuse_place = [&](const std::string& where) {
    refuse("output.path: {} is inside the corpus ({}); choose a folder outside it", job.output.path, where);
  };
  std::error_code ignored;
  if (fs::is_directory(job.input.path, ignored)) {
    for (const std::string& folder : corpus_folders(job.input.path))
      if (is_found_in(real_path(folder), out)) refuse_place(folder);
  } else if (!fs::exists(job.input.path, ignored) && is_matched(job.input.path, out)) {
    refuse_place(job.input.path);
  }
  std::set<std::string> seen;
  for (const std::string& file : find_corpus_files(job.input, "input.path: ").files) {
    // Links lead to rows of the folder itself, which a restart would delete.
    if (fs::is_symlink(file, ignored) && fs::path(real_path(file)).parent_path() == out) refuse_place(file);
    const fs::path folder = fs::path(file).parent_path();
    if (seen.insert(folder.string()).second && real_path(folder.empty() ? "." : folder.string()) == out)
      refuse_place(file);
  }
}

std::vector<std::string> paths_read(const Job& job) {
  return {job.file,
          job.input.path,
          job.task.schema,
          job.task.examples.path,
          job.output.calibration,
          job.model.path,
          job.model.adapter,
          job.method.speculate.draft,
          job.model.chat_is_file() ? job.model.chat : std::string()};
}

void check_log_apart(const std::string& log, const Job& job) {
  check_not_read(log, paths_read(job));
  const fs::path path(log), folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    refuse("--log: sheaf cannot write {}: the folder {} does not exist; create it first", log,
           folder.string());
  if (is_run_file(path.filename().string()) && real_path(folder.string()) == real_path(job.output.path))
    refuse("--log: the run itself writes {}; name another file", log);
}

}  // namespace sheaf

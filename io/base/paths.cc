#include "io/base/paths.h"

#include <cstdlib>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/base/program_file.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

bool fits_variable(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string variable(const std::string& name, const std::string& where) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0')
    refuse("{}: the environment variable {} is {}; set it, or write the path without it", where,
           shorten_text(name, 60), value == nullptr ? "not set" : "empty");
  return value;
}

std::string replace_variables(const std::string& written, const std::string& where) {
  std::string path;
  for (size_t at = 0; at < written.size();) {
    if (written[at] != '$' || at + 1 == written.size()) {
      path += written[at++];
      continue;
    }
    const bool braces = written[at + 1] == '{';
    const size_t begin = at + (braces ? 2 : 1);
    size_t end = begin;
    while (end < written.size() && fits_variable(written[end])) ++end;
    if (braces && (end == begin || end == written.size() || written[end] != '}'))
      refuse("{}: write a variable as ${{NAME}}, not {}", where, shorten_text(written.substr(at), 60));
    path += end > begin ? variable(written.substr(begin, end - begin), where) : "$";
    at = braces ? end + 1 : end;
    if (end == begin && written[at] == '$') ++at;  // $$ is a dollar sign
  }
  return path;
}

/// "configs" and "../out" give "out", unless `folder` is a link, whose parent is elsewhere.
std::string join(fs::path folder, const fs::path& path) {
  auto part = path.begin();
  for (; part != path.end(); ++part) {
    const fs::path last = folder.filename();
    std::error_code ignored;
    if (*part == ".") continue;
    if (*part != ".." || last.empty() || last == "." || last == ".." || fs::is_symlink(folder, ignored))
      break;
    folder = folder.parent_path();
  }
  for (; part != path.end(); ++part) folder /= *part;
  return folder.empty() ? "." : folder.string();
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string folder_of_file(const std::string& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) ? fs::path(file).parent_path().string() : std::string();
}

std::string resolve_path(const std::string& written, const std::string& folder, const std::string& where) {
  for (const std::string_view here :
       {"$PWD/", "${PWD}/"})  // also where the environment lacks it, as under cron
    if (written.starts_with(here)) return resolve_path(written.substr(here.size()), "", where);
  const bool home = written == "~" || written.starts_with("~/");
  std::string path =
      (home ? variable("HOME", where) : "") + replace_variables(written.substr(home ? 1 : 0), where);
  if (path.empty() || path.starts_with('/') || path.find("://") != std::string::npos) return path;
  return folder.empty() ? path : join(folder, path);
}

std::string find_installed_file(const std::string& name) {
  return find_above_program("share/sheaf/" + name);
}

std::string user_cache() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return std::string(cache) + "/sheaf";
  if (const char* home = std::getenv("HOME"); home && *home == '/')
    return std::string(home) + "/.cache/sheaf";
  return {};
}

}  // namespace sheaf

#include "io/base/digest_memory.h"

#include <algorithm>
#include <fmt/format.h>
#include <sys/stat.h>
#include <vector>

#include "core/base/error.h"
#include "io/base/file_layer.h"
#include "io/base/sha256.h"
#include "io/base/user_cache.h"

namespace sheaf {
namespace {

constexpr const char* kName = "digests";
constexpr size_t kMostLines = 1000;
constexpr size_t kHexDigits = 64;
constexpr int64_t kSettled = 2;  // seconds

std::string times_of(const struct stat& file) {
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", file.st_dev, file.st_ino, file.st_size,
                     file.st_mtim.tv_sec, file.st_mtim.tv_nsec, file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
}

/// A line ends with its own sum, so that damage makes it one of no file.
std::string line_of(const struct stat& file, const std::string& digest) {
  const std::string text = fmt::format("{} {}", digest, times_of(file));
  return text + " " + sha256(text);
}

std::vector<std::string> read_memory(const std::string& folder) {
  std::vector<std::string> lines;
  read_lines(folder + "/" + kName, [&](const std::string& line) { lines.push_back(line); });
  return lines;
}

}  // namespace

std::optional<std::string> remembered_digest(const struct stat& file) {
  const std::string folder = user_cache();
  if (folder.empty()) return std::nullopt;
  try {
    for (const std::string& line : read_memory(folder)) {
      const std::string digest = line.substr(0, kHexDigits);
      if (line == line_of(file, digest)) return digest;
    }
  } catch (const Error&) {  // the file is then read again
  }
  return std::nullopt;
}

void remember_digest(const struct stat& file, const std::string& digest, int64_t begun) {
  const std::string folder = user_cache();
  if (folder.empty() || std::max(file.st_mtim.tv_sec, file.st_ctim.tv_sec) > begun - kSettled) return;
  try {
    real_files().make_folder(folder);
    std::vector<std::string> lines = read_memory(folder);
    lines.push_back(line_of(file, digest));
    if (lines.size() > kMostLines) lines.erase(lines.begin(), lines.end() - kMostLines);
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    write_whole(real_files(), folder, kName, text);
  } catch (const Error&) {  // the next command reads the file again
  }
}

}  // namespace sheaf

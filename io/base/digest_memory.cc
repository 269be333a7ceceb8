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
constexpr int64_t kMostBytes = 1 << 20;
constexpr size_t kHexDigits = 64;
constexpr int64_t kSettled = 2;  // seconds

/// A line ends with its own sum, so that damage makes it one of no file.
std::string line_of(const struct stat& file, const std::string& digest) {
  const std::string text = fmt::format("{} {}", digest, file_state(file));
  return text + " " + sha256(text);
}

/// Nothing of a file that is larger than sheaf writes it.
std::vector<std::string> read_memory(const std::string& folder) {
  std::vector<std::string> lines;
  try {
    const std::string text = read_whole(folder + "/" + kName, kMostBytes).value_or("");
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      lines.push_back(text.substr(begin, end - begin));
  } catch (const Error&) {  // the files are then read again
  }
  return lines;
}

}  // namespace

std::string file_state(const struct stat& file) {
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", file.st_dev, file.st_ino, file.st_size,
                     file.st_mtim.tv_sec, file.st_mtim.tv_nsec, file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
}

std::optional<std::string> remembered_digest(const struct stat& file) {
  const std::string folder = user_cache();
  if (folder.empty()) return std::nullopt;
  const std::string times = file_state(file);
  for (const std::string& line : read_memory(folder))
    if (line.size() > kHexDigits && line.compare(kHexDigits + 1, times.size(), times) == 0)
      if (std::string digest = line.substr(0, kHexDigits); line == line_of(file, digest)) return digest;
  return std::nullopt;
}

bool is_settled(const struct stat& file, int64_t begun) {
  return std::max(file.st_mtim.tv_sec, file.st_ctim.tv_sec) <= begun - kSettled;
}

void remember_digest(const struct stat& file, const std::string& digest, int64_t begun) {
  const std::string folder = user_cache();
  if (folder.empty() || !is_settled(file, begun)) return;
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

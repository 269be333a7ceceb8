#include "io/base/file_identity.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "io/base/descriptor.h"
#include "io/base/file_layer.h"
#include "io/base/paths.h"
#include "io/base/process.h"
#include "io/base/sha256.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kSmall = 64 << 20;
constexpr int64_t kPiece = 16 << 20;
constexpr int64_t kRead = 1 << 20;
constexpr int64_t kSample = 64 << 10;
constexpr int64_t kSamples = 256;
constexpr int64_t kMicroseconds = 1'000'000;
constexpr const char* kMemory = "digests";
constexpr size_t kMostLines = 1000;
constexpr int64_t kMemoryBytes = 1 << 20;
constexpr size_t kHexDigits = 64;
constexpr int64_t kSettled = 2;  // seconds

/// Device, inode, size and times of a file as one text.
std::string file_state(const struct stat& file) {
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", file.st_dev, file.st_ino, file.st_size,
                     file.st_mtim.tv_sec, file.st_mtim.tv_nsec, file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
}

/// Whether a digest whose reading began `begun` seconds after the epoch may be remembered. Not if the file
/// was changed within the two seconds before: a change right after the look could leave its times as they
/// are.
bool is_settled(const struct stat& file, int64_t begun) {
  return std::max(file.st_mtim.tv_sec, file.st_ctim.tv_sec) <= begun - kSettled;
}

/// A line ends with its own sum, so that damage makes it one of no file.
std::string line_of(const struct stat& file, const std::string& digest) {
  const std::string text = fmt::format("{} {}", digest, file_state(file));
  return text + " " + sha256(text);
}

/// Nothing of a file that is larger than sheaf writes it.
std::vector<std::string> read_memory(const std::string& folder) {
  std::vector<std::string> lines;
  try {
    const std::string text = read_whole(folder + "/" + kMemory, kMemoryBytes).value_or("");
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      lines.push_back(text.substr(begin, end - begin));
  } catch (const Error&) {  // the files are then read again
  }
  return lines;
}

/// A file that is open to be looked at.
class SeenFile {
 public:
  explicit SeenFile(const std::string& path) : path_(path), file_(open_regular(path, O_RDONLY)) {
    if (file_.number() < 0) refuse_unopened(path_);
    found_ = stat_now();
  }

  const struct stat& found() const { return found_; }
  int64_t bytes() const { return static_cast<int64_t>(found_.st_size); }
  int64_t changed() const {
    return static_cast<int64_t>(found_.st_mtim.tv_sec) * kMicroseconds + found_.st_mtim.tv_nsec / 1000;
  }

  void add(Sha256& sum, int64_t begin, int64_t end) const {
    std::string bytes(static_cast<size_t>(std::min(kRead, end - begin)), '\0');
    for (int64_t at = begin; at < end; at += kRead) {
      const int64_t size = std::min(kRead, end - at);
      const int64_t count = read_at(file_.number(), at, bytes.data(), size);
      if (count < size)
        refuse("{}: the file cannot be read: {}", path_,
               count < 0 ? std::strerror(errno) : "the file became shorter");
      sum.add({bytes.data(), static_cast<size_t>(size)});
    }
  }

  void check_unchanged() const {
    const struct stat now = stat_now();
    const auto same = [](const timespec& a, const timespec& b) {
      return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
    };
    if (now.st_size == found_.st_size && same(now.st_mtim, found_.st_mtim)) return;
    refuse("{}: the file is being written; run the command again once it is complete", path_);
  }

 private:
  struct stat stat_now() const {
    struct stat now {};
    if (::fstat(file_.number(), &now) != 0) refuse_unopened(path_);
    return now;
  }

  const std::string& path_;
  Descriptor file_;
  struct stat found_ {};
};

std::string digest_of_samples(const SeenFile& file) {
  Sha256 sum;
  file.add(sum, 0, kRead);
  const int64_t step = (file.bytes() - 2 * kRead - kSample) / kSamples;
  for (int64_t i = 0; i < kSamples; ++i) file.add(sum, kRead + i * step, kRead + i * step + kSample);
  file.add(sum, file.bytes() - kRead, file.bytes());
  return sum.hex();
}

/// The sums of pieces are independent of each other, so that all cores can take part.
std::string digest_of_pieces(const SeenFile& file) {
  const int64_t pieces = (file.bytes() + kPiece - 1) / kPiece;
  std::vector<std::array<uint8_t, 32>> sums(static_cast<size_t>(pieces));
  ThreadPool(static_cast<int>(std::min<int64_t>(usable_cores().threads(), pieces)))
      .run(pieces, [&](int64_t i, int) {
        Sha256 sum;
        file.add(sum, i * kPiece, std::min((i + 1) * kPiece, file.bytes()));
        sums[static_cast<size_t>(i)] = sum.digest();
      });
  Sha256 all;
  for (const auto& sum : sums) all.add({reinterpret_cast<const char*>(sum.data()), sum.size()});
  return all.hex();
}

std::string digest_of_whole(const SeenFile& file) {
  Sha256 sum;
  file.add(sum, 0, file.bytes());
  return sum.hex();
}

std::string whole_digest(const SeenFile& file) {
  if (file.bytes() < kRead) return digest_of_whole(file);
  const bool small = file.bytes() <= kSmall;
  // A run looks several times, a process may run many jobs, and it may have no cache folder.
  static std::mutex mutex;
  static std::map<std::string, std::string> seen;
  const std::string state = file_state(file.found());
  const std::lock_guard lock(mutex);
  if (const auto known = seen.find(state); known != seen.end()) return known->second;
  if (!small)
    if (auto known = remembered_digest(file.found())) return *std::move(known);
  const int64_t begun =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  std::string digest = small ? digest_of_whole(file) : digest_of_pieces(file);
  if (!small) {
    file.check_unchanged();
    remember_digest(file.found(), digest, begun);
  }
  if (is_settled(file.found(), begun)) seen[state] = digest;
  return digest;
}

}  // namespace

std::optional<std::string> remembered_digest(const struct stat& file) {
  const std::string folder = user_cache();
  if (folder.empty()) return std::nullopt;
  const std::string times = file_state(file);
  for (const std::string& line : read_memory(folder))
    if (line.size() > kHexDigits && line.compare(kHexDigits + 1, times.size(), times) == 0)
      if (std::string digest = line.substr(0, kHexDigits); line == line_of(file, digest)) return digest;
  return std::nullopt;
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
    write_whole(real_files(), folder, kMemory, text);
  } catch (const Error&) {  // the next command reads the file again
  }
}

bool FileIdentity::is_same(const FileIdentity& other) const {
  if (bytes != other.bytes) return false;
  const bool digests = !digest.empty() && !other.digest.empty() && seen == other.seen;
  if (digests && digest != other.digest) return false;
  if (digests && seen == Seen::everything) return true;
  if (!etag.empty() && !other.etag.empty()) return etag == other.etag;
  return changed == other.changed;
}

FileIdentity identify_file(const std::string& path, Look look) {
  const SeenFile file(path);
  const bool sampled = look == Look::samples && file.bytes() > kSmall;
  return {file.bytes(), file.changed(), "", sampled ? digest_of_samples(file) : whole_digest(file),
          sampled ? FileIdentity::Seen::samples : FileIdentity::Seen::everything};
}

ordered_json identity_json(const FileIdentity& identity) {
  ordered_json about{{"bytes", identity.bytes}};
  if (identity.seen == FileIdentity::Seen::everything)
    about[identity.bytes > kSmall ? "pieces_sha256" : "sha256"] = identity.digest;
  else if (!identity.etag.empty())
    about["etag"] = identity.etag;
  else {
    if (!identity.digest.empty()) about["sampled_sha256"] = identity.digest;
    about["changed"] = identity.changed;
  }
  return about;
}

}  // namespace sheaf

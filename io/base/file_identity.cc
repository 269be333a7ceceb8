#include "io/base/file_identity.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/stat.h>
#include <vector>

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "io/base/descriptor.h"
#include "io/base/digest_memory.h"
#include "io/base/sha256.h"
#include "io/base/usable_cores.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kSmall = 64 << 20;
constexpr int64_t kPiece = 16 << 20;
constexpr int64_t kRead = 1 << 20;
constexpr int64_t kSample = 64 << 10;
constexpr int64_t kSamples = 256;
constexpr int64_t kMicroseconds = 1'000'000;

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

std::string whole_digest(const SeenFile& file) {
  if (file.bytes() <= kSmall) {
    Sha256 sum;
    file.add(sum, 0, file.bytes());
    return sum.hex();
  }
  // A run looks several times, and may have no cache folder.
  static std::mutex mutex;
  static std::map<std::string, std::string> seen;
  const std::string state = file_state(file.found());
  const std::lock_guard lock(mutex);
  if (const auto known = seen.find(state); known != seen.end()) return known->second;
  if (auto known = remembered_digest(file.found())) return *std::move(known);
  const int64_t begun =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  std::string digest = digest_of_pieces(file);
  file.check_unchanged();
  remember_digest(file.found(), digest, begun);
  if (is_settled(file.found(), begun)) seen[state] = digest;
  return digest;
}

}  // namespace

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
  FileIdentity identity{file.bytes(), file.changed(), "", "", FileIdentity::Seen::everything};
  if (look == Look::samples && file.bytes() > kSmall) {
    identity.digest = digest_of_samples(file);
    identity.seen = FileIdentity::Seen::samples;
  } else {
    identity.digest = whole_digest(file);
  }
  return identity;
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

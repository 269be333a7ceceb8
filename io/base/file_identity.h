#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

struct stat;

namespace sheaf {

/// What tells whether a file or an object is still the one that was seen: models, adapters, corpora, objects
/// of a store and published files are all compared by it.
struct FileIdentity {
  /// How much of the file the digest saw.
  enum class Seen { nothing, samples, everything };

  int64_t bytes = 0;
  int64_t changed = 0;    ///< time of the last change in microseconds, by the clock of the disk or the store
  std::string etag = {};  ///< of an object, as its store gives it; empty: none
  std::string digest = {};  ///< SHA-256 in hex digits; over 64 MiB, of the sums of its pieces, or of samples
  Seen seen = Seen::nothing;

  /// Whether two looks met the same contents, by the surest of what both know: digest, ETag, or time.
  bool is_same(const FileIdentity& other) const;
};

/// How sure a look at a file has to be.
enum class Look {
  every_byte,  ///< of a file that decides all answers, such as a model's weights
  samples,     ///< of a corpus, which may be larger than what is read in a minute; its time counts then
};

/// Looks at a file of this machine. Up to 64 MiB every byte is read. Of a larger one, `every_byte` is read
/// once, on all cores, and remembered for as long as its size, times and inode stay.
/// Refuses a file that cannot be read or that changes meanwhile.
FileIdentity identify_file(const std::string& path, Look look);

/// Digests of large files that this user's earlier commands read whole, in the user's cache folder. A digest
/// holds for as long as device, inode, size and both times of its file do. Where there is no such folder, or
/// it cannot be written, nothing is remembered.
std::optional<std::string> remembered_digest(const struct stat& file);
/// Keeps a digest whose reading began `begun` seconds after the epoch, unless the file was just changed.
void remember_digest(const struct stat& file, const std::string& digest, int64_t begun);

/// As a fingerprint has it: its size, and the surest of what is known.
nlohmann::ordered_json identity_json(const FileIdentity& identity);

}  // namespace sheaf

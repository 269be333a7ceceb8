#pragma once
#include <filesystem>

#include "io/kv_store/kv_file.h"

namespace sheaf {

/// What a file in the folder of a store is to the store, which never touches what is not its own.
enum class KvOwn {
  no,
  kept,   ///< ab/ab….kv, the file of a key: its 64 hex digits in a folder named by the first two
  staged  ///< ab/ab….kv.….part, a file that is being written or was left behind
};

/// By the name, and by what is there: a link, or anything else but a regular file, is not the store's own,
/// and neither is a file that is not there, or one in a folder that is a link. `path`: FOLDER/ab/NAME.
KvOwn own_kind(const std::filesystem::path& path);

/// The files of a store of keys and values. Several processes may add and prune at once: a file appears
/// whole, under the name of its key, and may go at any time; whoever has it open reads on. What else lies in
/// the folder (own_kind()) is neither read nor counted nor removed.
class KvFolder {
 public:
  /// Opens a store, or makes one where there is nothing. Refuses a folder that holds something else, with
  /// `place` before the message.
  static KvFolder open(const std::string& path, const std::string& place = {});
  /// Refuses where there is no store.
  static KvFolder existing(const std::string& path);

  struct Entry {
    std::string path;
    int64_t bytes = 0;
    std::filesystem::file_time_type used;  ///< last written or read
  };
  std::vector<Entry> list(KvOwn kind = KvOwn::kept) const;
  int64_t bytes() const;  ///< bytes of all segments, half-written ones included

  const std::string& path() const { return path_; }
  std::string file(const KvKey& key) const;
  bool has(const KvKey& key) const;
  /// Whether something that is not the store's own is where the file of the key would be.
  bool is_obstructed(const KvKey& key) const;
  /// Fails as FileLayer does, and where the place is obstructed.
  void add(const KvFileHead& head, std::span<const std::byte> bytes) const;
  /// Bytes a second that an earlier process read here, all its readers together; 0: not known.
  double speed() const;
  void save_speed(double bytes_per_second) const;
  /// Counts as used now; what fails is of no matter.
  void touch(const std::string& file) const;

  struct Pruned {
    int64_t files = 0, bytes = 0;
    /// Files that are being written, or were left behind within the last hour: they stay.
    int64_t staged_files = 0, staged_bytes = 0;
  };
  /// Removes what processes that were killed left behind.
  void clear_abandoned() const;
  /// Removes the least recently used until at most `most` bytes are left; clears too.
  Pruned prune(int64_t most) const;

 private:
  explicit KvFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

struct KvTotals {
  int64_t segments = 0, tokens = 0, bytes = 0;
};

/// The files of a store that one model, computing in one way, made and uses.
struct KvContents : KvTotals {
  std::string model, kind, state;
  std::string title;  ///< the part of model, kind and state that tells this entry from the others
  std::filesystem::file_time_type used;  ///< last of all
};

/// A file that cannot be used, and why.
struct KvTrouble {
  std::string path, trouble;
  bool damaged = false;  ///< for good
};

struct KvListing {
  std::vector<KvContents> contents;  ///< the one used last first
  KvTotals total;
  std::vector<KvTrouble> troubles;
};

/// Reads the head of every file; with `whole`, checks every byte.
KvListing list_contents(const KvFolder& folder, bool whole);

/// Deletes the damaged files of a listing, and says so in its troubles. Returns how many files that cannot be
/// used are left.
int64_t remove_damaged(KvListing& listing);

}  // namespace sheaf

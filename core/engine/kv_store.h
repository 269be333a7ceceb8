#pragma once

#include "core/engine/backend.h"
#include "core/segments/stack.h"

namespace sheaf {

/// Names a segment's keys and values: of everything that decides their bits.
using KvKey = std::array<uint8_t, 32>;

/// Keys and values on their way from a store.
class KvFetch {
 public:
  virtual ~KvFetch() = default;
  virtual bool ready() const = 0;  ///< whether bytes() would not wait
  virtual void wait() const = 0;
  /// Waits for them; empty where they could not be read, so that they are computed after all.
  virtual std::span<const std::byte> bytes() const = 0;
};

/// Bytes of keys and values in the host's memory.
struct KvBytes {
  std::shared_ptr<std::byte> data;
  int64_t size = 0;
  std::span<std::byte> span() const { return {data.get(), static_cast<size_t>(size)}; }
};

/// What a store did for a run.
struct KvStoreUse {
  int64_t disk_bytes = 0;     ///< read
  double disk_seconds = 0;    ///< seconds of reading, those of all readers added up
  int64_t kept_tokens = 0;    ///< written, and
  int64_t kept_bytes = 0;     ///< their bytes
  int64_t dearer_tokens = 0;  ///< there, but quicker to compute
  int64_t unkept_tokens = 0;  ///< not written: the disk was slower than the device, or refused
  int64_t damaged = 0;        ///< files that could not be used
  int64_t removed_bytes = 0;  ///< bytes removed to make room, the longest unused first
};

/// Keys and values of shared segments that outlive the pool. Several engines may use one at once.
class KvStore {
 public:
  virtual ~KvStore() = default;

  /// Of all that it holds.
  virtual KvForm form() const = 0;
  /// The name of a segment's keys and values. `seen`: those of the segments that it sees. `page_size`: not 0
  /// where keys are laid out in whole pages (Residents), with copies before the segment's own.
  virtual KvKey key(const Segment& segment, std::span<const KvKey> seen, int32_t page_size) const = 0;
  /// Begins to read them; null where they are not there, or computing them takes less time than reading.
  /// `tokens`: of the segment. `seconds`: that computing them takes, 0: not known.
  virtual std::shared_ptr<const KvFetch> fetch(const KvKey& key, int64_t bytes, int64_t tokens,
                                               double seconds) = 0;
  /// They will be fetched before long.
  virtual void expect(const KvKey& key, int64_t bytes, double seconds) = 0;
  /// Whether they should be kept: they are not there yet, and there is room for what waits to be written.
  virtual bool wants(const KvKey& key, int64_t bytes, int64_t tokens) = 0;
  virtual KvBytes room(int64_t bytes) = 0;
  virtual void keep(const KvKey& key, Role role, int32_t tokens, KvBytes bytes) = 0;
};

}  // namespace sheaf

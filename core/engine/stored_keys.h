#pragma once

#include "core/engine/flight.h"
#include "core/engine/kv_store.h"

namespace sheaf {

/// Between an engine's pool and a store: fetches what shared segments hold when they are admitted, puts it
/// into the pool in place of computing it, and keeps what was computed.
class StoredKeys {
 public:
  /// `store`: null where there is none; then nothing is ever fetched or kept.
  StoredKeys(KvStore* store, Backend& backend, int32_t page_size)
      : store_(store), backend_(backend), page_size_(page_size) {}

  /// A stack was admitted: begins to read what the store has of it. Returns how many of its tokens are on
  /// their way. `seconds_per_token`: of computing; 0: not known.
  int64_t admitted(const Flight& flight, double seconds_per_token);
  /// A stack will be admitted before long. `in_pages`: how it will lie there (Residents).
  void expect(const Stack& stack, bool in_pages, double seconds_per_token);
  /// What was fetched goes into the pool, where the resident has grown to hold it. Returns its keys; 0 where
  /// they could not be read, and the resident is empty again.
  int32_t take(Resident* resident);
  /// The resident's last key is computed.
  void keep(Role role, const Resident* resident);
  bool keeps(const Resident* resident) const { return store_ && resident->keyed; }

 private:
  void look_up(const Segment& segment, Resident* own, std::span<Resident* const> residents,
               double seconds_per_token);
  std::span<const int32_t> slots_of(const Resident* resident);
  int64_t bytes_of(int64_t keys) const { return keys * backend_.kv_slot_bytes(store_->form()); }

  KvStore* store_;
  Backend& backend_;
  int32_t page_size_;
  std::vector<int32_t> slots_;
  std::vector<KvKey> seen_;
};

}  // namespace sheaf

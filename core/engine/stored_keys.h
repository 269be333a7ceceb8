#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/engine/backend.h"
#include "core/engine/kv_store.h"
#include "core/engine/residents.h"

namespace sheaf {

/// Between an engine's pool and a store: fetches what shared segments hold when they are admitted, puts it
/// into the pool in place of computing it, and keeps what was computed.
class StoredKeys {
 public:
  /// `store`: null where there is none; then nothing is ever fetched or kept.
  StoredKeys(KvStore* store, Backend& backend, int32_t page_size)
      : store_(store), backend_(backend), page_size_(page_size) {}

  /// A segment was admitted. `residents`: of its stack. `seconds_per_token`: that computing takes, 0: not
  /// known.
  void admitted(const Segment& segment, Resident* own, std::span<Resident* const> residents,
                double seconds_per_token);
  /// A stack will be admitted before long. `in_pages`: how it will lie there (Residents).
  void expect(const Stack& stack, bool in_pages, double seconds_per_token);
  /// What was fetched goes into the pool, whose pages the resident has already. False where it could not be
  /// read.
  bool take(Resident* resident);
  /// The resident's last key is computed.
  void keep(Role role, const Resident* resident);
  bool keeps(const Resident* resident) const { return store_ && resident->keyed; }

 private:
  std::span<const int32_t> slots_of(const Resident* resident);
  int64_t bytes_of(int64_t keys) const { return keys * backend_.kv_slot_bytes(store_->form()); }

  KvStore* store_;
  Backend& backend_;
  int32_t page_size_;
  std::vector<int32_t> slots_;
  std::vector<KvKey> seen_;
};

}  // namespace sheaf

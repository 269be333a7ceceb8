#pragma once
#include <array>
#include <deque>
#include <list>
#include <optional>
#include <unordered_map>

#include "core/engine/kv_store.h"

namespace sheaf {

/// Makes the backend's key/value pool as asked, or as large as memory allows; returns its pages.
int32_t make_pool(Backend& backend, int32_t pages, int32_t page_size);

/// Hands out the page numbers of the key/value pool. Who holds a page, and how often it is shared, is
/// Residents' business.
class PagePool {
 public:
  PagePool(int32_t pages, int32_t page_size);

  int32_t page_size() const { return page_size_; }
  int32_t total() const { return static_cast<int32_t>(taken_.size()); }
  int32_t free() const { return static_cast<int32_t>(free_.size()); }
  int32_t pages_for(int64_t tokens) const {
    return static_cast<int32_t>((tokens + page_size_ - 1) / page_size_);
  }

  int32_t take();  ///< fails when none is free
  void grow(int32_t pages);
  void give_back(int32_t page);

 private:
  int32_t page_size_;
  std::vector<bool> taken_;
  std::vector<int32_t> free_;  ///< last in, first out: a page just freed is warm in cache
};

/// A segment whose keys and values lie, or are about to lie, in the pool.
struct Resident {
  uint64_t serial = 0;  ///< never used twice
  int32_t first_position = 0;
  bool in_pages = false;       ///< laid out as if it and all that it sees were one segment, see Residents
  int32_t lead = 0;            ///< in_pages: copies of the keys before its own in its first page
  Resident* before = nullptr;  ///< in_pages: the resident whose end it follows
  int32_t keys = 0;            ///< rows written so far, this step's included
  int32_t users = 0;           ///< unfinished segments that see it or are it, in all stacks
  int32_t reserved = 0;        ///< pages set aside for it and not yet taken
  std::vector<int32_t> pages;
  bool shared = false;                   ///< stays after its last user, until its pages are needed
  std::list<Resident*>::iterator idle;   ///< its place in the list of unused ones
  bool keyed = false;                    ///< whether a store could have it
  KvKey key{};                           ///< its name in a store
  std::shared_ptr<const KvFetch> fetch;  ///< its keys on their way from a store

  /// The last batch whose rows look at it, and its place in the list of that batch.
  struct Looked {
    uint64_t batch = 0;
    size_t place = 0;
  };
  std::array<Looked, 2> looked{};  ///< by AttentionTile::apart

  /// The slot of the pool that holds a key; `index`: of the key, copies before its own counted.
  int32_t slot(int32_t index, int32_t page_size) const {
    return pages[index / page_size] * page_size + index % page_size;
  }
};

/// The segments in the pool, with reference counts. Equal shared segments of different stacks are one
/// resident, so a common prefix is computed and stored once whatever the method; unused shared ones stay
/// until their pages are needed, oldest first.
///
/// With `whole_pages`, only whole pages are shared: a segment that begins in the middle of a page starts
/// with copies of the keys before it there. So a row's keys lie in the same slots of the same pages, whether
/// they are of one segment or of several, and a backend that adds up page by page gets the same sums. Only
/// stacks whose segments follow one another at consecutive positions are laid out so.
class Residents {
 public:
  Residents(PagePool& pool, bool whole_pages) : pool_(pool), whole_pages_(whole_pages) {}

  bool whole_pages() const { return whole_pages_; }
  /// Whether a stack is laid out in whole pages.
  bool in_pages(const Stack& stack) const;
  /// Pages a stack needs that are not free of charge already.
  int32_t pages_needed(const Stack& stack) const;
  /// Pages that a new stack could still get.
  int32_t room() const { return pool_.total() - in_use_ - reserved_; }
  /// Pages that a new stack could get without a shared segment being forgotten.
  int32_t free_room() const { return pool_.free() - reserved_; }

  /// The resident for each segment of a stack: an equal shared one, or a new one with its pages reserved.
  /// Each segment uses its own resident and those it sees.
  std::vector<Resident*> admit(const Stack& stack);
  /// The segment is finished: it no longer holds its own resident or those it sees.
  void finish(const Segment& segment, Resident* own, const std::vector<Resident*>& stack_residents);
  /// Keeps a resident's pages until drop().
  void use(Resident* resident);
  void drop(Resident* resident);
  /// Takes the pages for `keys` keys.
  void grow(Resident* resident, int32_t keys);

  int32_t peak_pages() const { return peak_; }

 private:
  struct Key {
    std::vector<uint64_t> sees;
    int32_t first_position = 0;
    bool in_pages = false;
    Tokens tokens;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  /// What makes a segment equal to another; nothing where it is not shared or sees something not resident.
  static std::optional<Key> key_of(const Segment& segment, bool whole,
                                   const std::vector<Resident*>& stack_residents);
  Resident* find(const std::optional<Key>& key) const;
  int32_t lead_of(const Segment& segment, bool whole) const {
    return whole ? segment.first_position % pool_.page_size() : 0;
  }
  Resident* make(const Segment& segment, int32_t reserved);
  void forget(Resident* resident);

  PagePool& pool_;
  bool whole_pages_;
  uint64_t next_serial_ = 1;
  int32_t in_use_ = 0;    ///< pages of residents with users
  int32_t reserved_ = 0;  ///< pages set aside for them
  int32_t peak_ = 0;
  std::deque<Resident> all_;
  std::vector<Resident*> spare_;  ///< of all_, forgotten
  std::unordered_map<Key, Resident*, KeyHash> shared_;
  std::unordered_map<uint64_t, Key> keys_;  ///< of the shared ones, by serial
  std::list<Resident*> idle_;               ///< shared without users, oldest first
};

}  // namespace sheaf

#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tokenizer/vocabulary.h"

namespace sheaf {

/// Which two neighbouring symbols become one, and in what order: the lowest rank first, the leftmost of
/// equals.
class Merges {
 public:
  struct Merge {
    uint32_t rank;
    TokenId merged;
  };
  static constexpr uint32_t none = UINT32_MAX;

  void reserve(size_t merges);
  /// A pair given twice keeps the last rank, as `tokenizers` does.
  void add(TokenId left, TokenId right, uint32_t rank, TokenId merged);
  /// Rank `none` where the pair does not merge.
  Merge find(TokenId left, TokenId right) const {
    const uint64_t key = key_of(left, right);
    for (size_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key) return slots_[slot].merge;
      if (slots_[slot].key == free_key) return {none, -1};
    }
  }

 private:
  struct Slot {
    uint64_t key = free_key;
    Merge merge{none, -1};
  };
  static constexpr uint64_t free_key = UINT64_MAX;
  static uint64_t key_of(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  // Another factor in each process: no file can choose pairs that fall on one slot.
  size_t slot_of(uint64_t key) const { return static_cast<size_t>(key * factor_ >> 32 >> shift_); }

  std::vector<Slot> slots_ = std::vector<Slot>(2);
  size_t mask_ = 1;
  int shift_ = 31;  // 64 less the bits of a slot, less the 32 above
  uint64_t factor_ = hash_seed() | 1;
  size_t used_ = 0;
};

/// Working space of merge_all.
struct MergeScratch {
  struct Node {
    int32_t before, after;  // neighbours in the list, -1 at the ends
  };
  struct Candidate {
    uint32_t rank;
    int32_t at;
    TokenId merged;
  };
  std::vector<Node> nodes;
  std::vector<Candidate> heap;
};

/// Merges `symbols` in place until no pair merges. Short words by scanning, long ones by a heap: n log n.
void merge_all(const Merges& merges, std::vector<TokenId>& symbols, MergeScratch& scratch);

}  // namespace sheaf

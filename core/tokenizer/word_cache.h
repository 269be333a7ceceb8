#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "core/tokenizer/vocabulary.h"

namespace sheaf {

/// Remembers the ids of short words; a word that falls on another's place replaces it.
class WordCache {
 public:
  /// Empty where the word is not known.
  std::span<const TokenId> find(std::string_view word) const {
    if (word.size() > longest || word.empty()) return {};
    const Entry& e = entries_[place(word)];
    if (e.length != word.size() || std::memcmp(e.key.data(), word.data(), word.size()) != 0) return {};
    return {e.ids.data(), e.count};
  }
  void put(std::string_view word, std::span<const TokenId> ids) {
    if (word.size() > longest || word.empty() || ids.size() > most_ids || ids.empty()) return;
    Entry& e = entries_[place(word)];
    e.length = static_cast<uint8_t>(word.size());
    e.count = static_cast<uint8_t>(ids.size());
    std::memcpy(e.key.data(), word.data(), word.size());
    std::memcpy(e.ids.data(), ids.data(), ids.size_bytes());
  }

 private:
  static constexpr size_t longest = 30, most_ids = 8, places = 1 << 14;
  struct alignas(64) Entry {
    uint8_t length = 0;
    uint8_t count = 0;
    std::array<char, longest> key;
    std::array<TokenId, most_ids> ids;
  };
  static size_t place(std::string_view word) { return hash_bytes(word) & (places - 1); }

  std::vector<Entry> entries_ = std::vector<Entry>(places);
};

/// Working space for one caller at a time, kept between calls: as many exist as calls ever ran at once.
template <class Scratch>
class ScratchPool {
 public:
  class Lease {
   public:
    explicit Lease(ScratchPool& pool) : pool_(pool) {
      const std::lock_guard lock(pool.mutex_);
      if (pool.free_.empty()) {
        scratch_ = std::make_unique<Scratch>();
      } else {
        scratch_ = std::move(pool.free_.back());
        pool.free_.pop_back();
      }
    }
    ~Lease() {
      const std::lock_guard lock(pool_.mutex_);
      pool_.free_.push_back(std::move(scratch_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Scratch& operator*() { return *scratch_; }
    Scratch* operator->() { return scratch_.get(); }

   private:
    ScratchPool& pool_;
    std::unique_ptr<Scratch> scratch_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

}  // namespace sheaf

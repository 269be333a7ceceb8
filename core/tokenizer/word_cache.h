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
  /// Appends the ids of `word`: the remembered ones, else those that `encode` appends.
  template <class Encode>
  void append(std::string_view word, Tokens& out, Encode encode) {
    if (const auto known = find(word); !known.empty()) {
      for (const TokenId id : known) out.push_back(id);
      return;
    }
    const size_t first = out.size();
    encode();
    put(word, std::span(out).subspan(first));
  }

 private:
  static constexpr size_t longest = 30, most_ids = 8, places = 1 << 14;
  struct alignas(64) Entry {
    uint8_t length = 0;
    uint8_t count = 0;
    std::array<char, longest> key;
    std::array<TokenId, most_ids> ids;
  };
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
  static size_t place(std::string_view word) { return hash_bytes(word) & (places - 1); }

  std::vector<Entry> entries_ = std::vector<Entry>(places);
};

/// Working space for one caller at a time, kept between calls: as many exist as calls ever ran at once.
template <class Scratch>
class ScratchPool {
 public:
  /// Calls `use` with a working space that nobody else uses meanwhile.
  template <class Use>
  void lend(Use use) {
    std::unique_ptr<Scratch> scratch;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        scratch = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!scratch) scratch = std::make_unique<Scratch>();
    use(*scratch);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

}  // namespace sheaf

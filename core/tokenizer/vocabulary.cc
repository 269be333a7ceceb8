#include "core/tokenizer/vocabulary.h"

#include <chrono>

#include "core/base/random_stream.h"

namespace sheaf {

uint64_t hash_seed() {
  // Where the program and its stack lie differs, too.
  static const int place = 0;
  static const uint64_t seed =
      mix(reinterpret_cast<uintptr_t>(&place),
          static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
  return seed;
}

void Vocabulary::resize(size_t count) {
  bytes_.resize(count);
  size_t slots = 64;
  while (slots < count * 2) slots *= 2;
  if (slots > slots_.size()) grow(slots);
}

void Vocabulary::grow(size_t slots) {
  std::vector<TokenId> before(slots, -1);
  std::swap(before, slots_);
  for (const TokenId id : before)
    if (id >= 0) insert(id);
}

void Vocabulary::insert(TokenId id) {
  const size_t mask = slots_.size() - 1;
  size_t slot = hash_bytes(bytes(id), seed_) & mask;
  while (slots_[slot] >= 0) slot = (slot + 1) & mask;
  slots_[slot] = id;
}

void Vocabulary::set(TokenId id, std::string bytes, bool findable) {
  bytes_[static_cast<size_t>(id)] = std::move(bytes);
  if (!findable || this->bytes(id).empty() || find_id(this->bytes(id)) >= 0) return;
  if (++used_ * 2 > slots_.size()) grow(slots_.size() * 2);
  insert(id);
}

TokenId Vocabulary::find_id(std::string_view bytes) const {
  if (slots_.empty()) return -1;
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash_bytes(bytes, seed_) & mask; slots_[slot] >= 0; slot = (slot + 1) & mask)
    if (this->bytes(slots_[slot]) == bytes) return slots_[slot];
  return -1;
}

}  // namespace sheaf

#include "core/engine/stored_keys.h"

#include <optional>
#include <utility>

namespace sheaf {
namespace {

/// Whether other prompts may well have it too.
bool is_common(const Segment& segment) {
  return segment.shared && !segment.tokens.empty() &&
         (segment.role == Role::instruction || segment.role == Role::document ||
          segment.role == Role::context);
}

}  // namespace

int64_t StoredKeys::admitted(const Flight& flight, double seconds_per_token) {
  if (!store_) return 0;
  int64_t fetched = 0;
  for (size_t i = 0; i < flight.stack.segments.size(); ++i) {
    const Segment& segment = flight.stack.segments[i];
    Resident* own = flight.residents[i];
    if (flight.prompted[i].empty() && flight.open_answers[i] == 0 && !flight.stack.later_round)
      look_up(segment, own, flight.residents, seconds_per_token);
    if (own->fetch) fetched += std::ssize(segment.tokens);
  }
  return fetched;
}

void StoredKeys::look_up(const Segment& segment, Resident* own, std::span<Resident* const> residents,
                         double seconds_per_token) {
  if (own->keyed || own->keys > 0 || !is_common(segment)) return;
  seen_.clear();
  for (const Sight& sight : segment.sees) {
    const Resident* seen = residents[sight.segment];
    if (!seen->keyed) return;
    seen_.push_back(seen->key);
  }
  own->key = store_->key(segment, seen_, own->in_pages ? page_size_ : 0);
  own->keyed = true;
  const auto tokens = static_cast<int64_t>(segment.tokens.size());
  own->fetch = store_->fetch(own->key, bytes_of(own->lead + tokens), tokens,
                             seconds_per_token * static_cast<double>(tokens));
}

void StoredKeys::expect(const Stack& stack, bool in_pages, double seconds_per_token) {
  if (!store_) return;
  std::vector<std::optional<KvKey>> keys;
  for (const Segment& segment : stack.segments) {
    keys.emplace_back();
    if (!is_common(segment)) continue;
    seen_.clear();
    for (const Sight& sight : segment.sees)
      if (const auto& key = keys[sight.segment]) seen_.push_back(*key);
    if (seen_.size() < segment.sees.size()) continue;
    keys.back() = store_->key(segment, seen_, in_pages ? page_size_ : 0);
    const int32_t lead = in_pages ? segment.first_position % page_size_ : 0;
    const auto tokens = static_cast<int64_t>(segment.tokens.size());
    store_->expect(*keys.back(), bytes_of(lead + tokens), seconds_per_token * static_cast<double>(tokens));
  }
}

std::span<const int32_t> StoredKeys::slots_of(const Resident* resident) {
  slots_.clear();
  for (int32_t key = 0; key < resident->lead + resident->keys; ++key)
    slots_.push_back(resident->slot(key, page_size_));
  return slots_;
}

int32_t StoredKeys::take(Resident* resident) {
  const std::shared_ptr<const KvFetch> fetch = std::exchange(resident->fetch, nullptr);
  const std::span<const std::byte> bytes = fetch->bytes();
  const std::span<const int32_t> slots = slots_of(resident);
  if (std::cmp_not_equal(bytes.size(), bytes_of(std::ssize(slots)))) return resident->keys = 0;
  backend_.write_kv(slots, bytes, store_->form());
  return resident->keys;
}

void StoredKeys::keep(Role role, const Resident* resident) {
  const int64_t size = bytes_of(resident->lead + resident->keys);
  if (!store_->wants(resident->key, size, resident->keys)) return;
  KvBytes bytes = store_->room(size);
  backend_.read_kv(slots_of(resident), bytes.span(), store_->form());
  store_->keep(resident->key, role, resident->keys, std::move(bytes));
}

}  // namespace sheaf

#include "core/engine/residents.h"

#include <algorithm>
#include <ranges>
#include <span>

#include "core/base/error.h"
#include "core/base/random_stream.h"

namespace sheaf {
namespace {

/// Whether every segment begins where the last one that it sees ends, and sees all that that one sees. Copies
/// of keys count as a segment's own, which documents' keys cannot where they are weighed apart.
bool follow_in_order(const Stack& stack) {
  std::vector<bool> grows(stack.segments.size(), false);  // by an answer
  for (const Slot& slot : stack.slots)
    for (SegmentId id = slot.answer; id < slot.answer + slot.prompts(); ++id) grows[id] = true;
  for (const Segment& segment : stack.segments) {
    if (segment.sees.empty()) {
      if (segment.first_position != 0) return false;
      continue;
    }
    const Sight last = segment.sees.back();
    const Segment& before = stack.segments[last.segment];
    const bool same = std::ranges::equal(
        before.sees, std::span(segment.sees).first(segment.sees.size() - 1),
        [](const Sight& a, const Sight& b) { return a.segment == b.segment && !a.abreast && !b.abreast; });
    const bool apart = std::ranges::any_of(segment.sees, [](const Sight& s) { return !s.softmax.plain(); });
    if (!same || apart || last.abreast || grows[last.segment] ||
        segment.first_position != stack.end_position(last.segment))
      return false;
  }
  return true;
}

}  // namespace

int32_t make_pool(Backend& backend, int32_t pages, int32_t page_size) {
  while (true) {
    try {
      backend.allocate_kv(pages, page_size);
      return pages;
    } catch (const OutOfMemory&) {
      if (pages < 8) throw;
      pages -= pages / 8;
    }
  }
}

PagePool::PagePool(int32_t pages, int32_t page_size) : page_size_(page_size) {
  if (pages < 1 || page_size < 1) fail("a key/value pool needs at least one page");
  taken_.assign(static_cast<size_t>(pages), false);
  for (int32_t page = pages - 1; page >= 0; --page) free_.push_back(page);
}

void PagePool::grow(int32_t pages) {
  std::vector<int32_t> added;
  for (int32_t page = pages - 1; page >= total(); --page) added.push_back(page);
  free_.insert(free_.begin(), added.begin(), added.end());
  taken_.resize(static_cast<size_t>(pages), false);
}

int32_t PagePool::take() {
  if (free_.empty()) fail("the key/value pool is empty; admission should have prevented this");
  const int32_t page = free_.back();
  free_.pop_back();
  taken_[page] = true;
  return page;
}

void PagePool::give_back(int32_t page) {
  if (!taken_[page]) fail("page {} is returned twice", page);
  taken_[page] = false;
  free_.push_back(page);
}

size_t Residents::KeyHash::operator()(const Key& key) const {
  uint64_t hash = static_cast<uint64_t>(key.first_position) * 2 + (key.in_pages ? 1 : 0);
  for (uint64_t serial : key.sees) hash = mix(hash, serial);
  for (TokenId token : key.tokens) hash = mix(hash, static_cast<uint64_t>(token));
  return hash;
}

std::optional<Residents::Key> Residents::key_of(const Segment& segment, bool whole,
                                                const std::vector<Resident*>& stack_residents) {
  if (!segment.shared) return std::nullopt;
  Key key{{}, segment.first_position, whole, segment.tokens};
  for (const Sight& sight : segment.sees) {
    const Resident* seen = stack_residents[sight.segment];
    if (!seen) return std::nullopt;
    key.sees.push_back(seen->serial);
  }
  return key;
}

Resident* Residents::find(const std::optional<Key>& key) const {
  const auto at = key ? shared_.find(*key) : shared_.end();
  return at == shared_.end() ? nullptr : at->second;
}

bool Residents::in_pages(const Stack& stack) const {
  return whole_pages_ && follow_in_order(stack);
}

int32_t Residents::pages_needed(const Stack& stack) const {
  const std::vector<int32_t> keys = stack.most_keys();
  const bool whole = in_pages(stack);
  std::vector<Resident*> residents;
  int32_t needed = 0;
  for (size_t i = 0; i < stack.segments.size(); ++i) {
    const auto key = key_of(stack.segments[i], whole, residents);
    Resident* equal = find(key);
    residents.push_back(equal);
    if (!equal)
      needed += pool_.pages_for(lead_of(stack.segments[i], whole) + keys[i]);
    else if (equal->users == 0)
      needed += static_cast<int32_t>(equal->pages.size());
  }
  return needed;
}

std::vector<Resident*> Residents::admit(const Stack& stack) {
  const std::vector<int32_t> keys = stack.most_keys();
  const bool whole = in_pages(stack);
  std::vector<Resident*> residents;
  for (size_t i = 0; i < stack.segments.size(); ++i) {
    const Segment& segment = stack.segments[i];
    auto key = key_of(segment, whole, residents);
    Resident* resident = find(key);
    if (!resident) {
      const int32_t lead = lead_of(segment, whole);
      resident = make(segment, pool_.pages_for(lead + keys[i]));
      resident->in_pages = whole;
      resident->lead = lead;
      if (!segment.sees.empty()) resident->before = residents[segment.sees.back().segment];
      if (key) {
        keys_.emplace(resident->serial, *key);
        shared_.emplace(std::move(*key), resident);
      }
    } else {
      use(resident);
    }
    residents.push_back(resident);
    for (const Sight& sight : segment.sees) use(residents[sight.segment]);
  }
  return residents;
}

Resident* Residents::make(const Segment& segment, int32_t reserved) {
  if (spare_.empty()) spare_.push_back(&all_.emplace_back());
  Resident* resident = spare_.back();
  spare_.pop_back();
  std::vector<int32_t> pages = std::move(resident->pages);
  pages.clear();
  *resident = {};
  resident->pages = std::move(pages);  // a list that need not be allocated again
  resident->serial = next_serial_++;
  resident->first_position = segment.first_position;
  resident->shared = segment.shared;
  resident->reserved = reserved;
  resident->users = 1;
  reserved_ += reserved;
  return resident;
}

void Residents::finish(const Segment& segment, Resident* own, const std::vector<Resident*>& stack_residents) {
  for (const Sight& sight : segment.sees) drop(stack_residents[sight.segment]);
  reserved_ -= own->reserved;
  own->reserved = 0;
  drop(own);
}

void Residents::grow(Resident* resident, int32_t keys) {
  const auto wanted = static_cast<size_t>(pool_.pages_for(resident->lead + keys));
  while (resident->pages.size() < wanted) {
    if (pool_.free() == 0 && !idle_.empty()) {
      Resident* oldest = idle_.front();
      idle_.pop_front();
      forget(oldest);
    }
    resident->pages.push_back(pool_.take());
    --resident->reserved;
    --reserved_;
    peak_ = std::max(peak_, ++in_use_);
  }
  resident->keys = keys;
}

void Residents::use(Resident* resident) {
  if (resident->users++ > 0) return;
  idle_.erase(resident->idle);
  in_use_ += static_cast<int32_t>(resident->pages.size());
  peak_ = std::max(peak_, in_use_);
}

void Residents::drop(Resident* resident) {
  if (--resident->users > 0) return;
  in_use_ -= static_cast<int32_t>(resident->pages.size());
  if (resident->shared)
    resident->idle = idle_.insert(idle_.end(), resident);
  else
    forget(resident);
}

void Residents::forget(Resident* resident) {
  // Last page first, so that whoever takes them has them in a row, as attention on a CPU likes them.
  for (int32_t page : std::views::reverse(resident->pages)) pool_.give_back(page);
  if (resident->shared) {
    const auto key = keys_.find(resident->serial);
    shared_.erase(key->second);
    keys_.erase(key);
  }
  spare_.push_back(resident);
}

}  // namespace sheaf

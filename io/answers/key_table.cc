#include "io/answers/key_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/error.h"

namespace sheaf {
namespace {

constexpr int64_t kFirstEntries = 1024;
constexpr int64_t kSmall = 1 << 20;               // bytes
constexpr double kFullest = 0.7, kPacked = 0.85;  // shares of the entries that are taken
constexpr uint64_t kPlaceBits = 40;

static_assert(std::endian::native == std::endian::little);

struct Entry {
  AnswerKey key;
  uint8_t place[5];  ///< plus one; 0: the entry is free
};
static_assert(sizeof(Entry) == 17);

uint64_t stored_place(const Entry& entry) {
  uint64_t place = 0;
  std::memcpy(&place, entry.place, sizeof entry.place);
  return place;
}

/// Where a key stands in a table, were that entry free.
size_t home_of(const AnswerKey& key, size_t entries) {
  uint64_t first = 0;
  std::memcpy(&first, key.data(), sizeof first);
  return static_cast<size_t>(static_cast<unsigned __int128>(first) * entries >> 64);
}

/// What a packed entry keeps of a key: bytes that do not decide where it stands.
uint64_t tag_of(const AnswerKey& key) {
  uint64_t tag = 0;
  std::memcpy(&tag, key.data() + 8, 3);
  return tag;
}

/// The first entry from a key's home on for which `ends` holds, or none.
template <class Table, class Ends>
std::optional<size_t> look_for(const Table& table, const AnswerKey& key, const Ends& ends) {
  if (table.empty()) return std::nullopt;
  size_t at = home_of(key, table.size());
  for (size_t looked = 0; looked < table.size(); ++looked) {
    if (ends(table[at])) return at;
    at = at + 1 == table.size() ? 0 : at + 1;
  }
  return std::nullopt;
}

template <class T>
std::span<T> entries_in(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

std::optional<int64_t> find_packed(std::span<const std::byte> table, const AnswerKey& key,
                                   const std::function<bool(int64_t place)>& holds) {
  const std::span entries{reinterpret_cast<const uint64_t*>(table.data()), table.size() / sizeof(uint64_t)};
  const uint64_t tag = tag_of(key);
  constexpr uint64_t kPlace = (uint64_t{1} << kPlaceBits) - 1;
  const auto place_of = [](uint64_t entry) { return static_cast<int64_t>(entry & kPlace) - 1; };
  const auto found = look_for(entries, key, [&](uint64_t entry) {
    return entry == 0 || (entry >> kPlaceBits == tag && holds(place_of(entry)));
  });
  if (!found || entries[*found] == 0) return std::nullopt;
  return place_of(entries[*found]);
}

std::optional<int64_t> KeyTable::find(const AnswerKey& key) const {
  const auto entries = entries_in<Entry>(bytes_);
  const auto found = look_for(
      entries, key, [&](const Entry& entry) { return stored_place(entry) == 0 || entry.key == key; });
  if (!found || stored_place(entries[*found]) == 0) return std::nullopt;
  return static_cast<int64_t>(stored_place(entries[*found])) - 1;
}

void KeyTable::add(const AnswerKey& key, int64_t place) {
  if (place < 0 || place > kLargestPlace) fail("the answers of a run take more than {} bytes", kLargestPlace);
  const auto entries = static_cast<int64_t>(bytes_.size() / sizeof(Entry));
  if (static_cast<double>(size_ + 1) > kFullest * static_cast<double>(entries))
    grow(std::max(kFirstEntries, 2 * entries));
  put(key, static_cast<uint64_t>(place) + 1);
  ++size_;
}

void KeyTable::put(const AnswerKey& key, uint64_t stored) {
  const auto entries = entries_in<Entry>(bytes_);
  Entry& entry = entries[*look_for(entries, key, [](const Entry& each) { return stored_place(each) == 0; })];
  entry.key = key;
  std::memcpy(entry.place, &stored, sizeof entry.place);
}

void KeyTable::grow(int64_t entries) {
  const int64_t bytes = entries * int64_t{sizeof(Entry)};
  const auto before = entries_in<Entry>(bytes_);
  std::vector<std::byte> small;
  std::unique_ptr<ScratchFile> file;
  if (bytes <= kSmall) {
    small.resize(static_cast<size_t>(bytes));
    bytes_ = small;
  } else {
    file = std::make_unique<ScratchFile>(near_);
    bytes_ = file->map(bytes);
  }
  for (const Entry& entry : before)
    if (const uint64_t stored = stored_place(entry); stored != 0) put(entry.key, stored);
  small_ = std::move(small);  // the bytes stay where they are
  file_ = std::move(file);
}

std::span<const std::byte> KeyTable::packed(ScratchFile& file) const {
  const auto count = static_cast<int64_t>(static_cast<double>(size_) / kPacked) + 1;
  const std::span<std::byte> bytes = file.map(count * int64_t{sizeof(uint64_t)});
  const auto table = entries_in<uint64_t>(bytes);
  for (const Entry& entry : entries_in<Entry>(bytes_)) {
    const uint64_t stored = stored_place(entry);
    if (stored == 0) continue;
    const auto at = look_for(table, entry.key, [](uint64_t each) { return each == 0; });
    table[*at] = tag_of(entry.key) << kPlaceBits | stored;
  }
  return bytes;
}

}  // namespace sheaf

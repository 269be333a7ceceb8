#pragma once
#include <functional>
#include <memory>

#include "core/plan/known_answers.h"
#include "io/base/scratch_file.h"

namespace sheaf {

/// A table as it is written to a file: entries of 8 bytes, little-endian, 24 bits of the key and 40 of a
/// place plus one; 0 where there is none. A key stands at the entry that its first 8 bytes, as a share of all
/// numbers, point to, or at the next free one after it; the first entry follows the last. The place of a key,
/// of those for which `holds` says that the key is there. The table may hold anything.
std::optional<int64_t> find_packed(std::span<const std::byte> table, const AnswerKey& key,
                                   const std::function<bool(int64_t place)>& holds);

constexpr int64_t kLargestPlace = (int64_t{1} << 40) - 2;

/// A table that grows. A large one lies in a file without a name, so that it takes no memory of its own.
class KeyTable {
 public:
  /// `near`: where there should be room for the file.
  explicit KeyTable(const std::string& near) : near_(near) {}

  std::optional<int64_t> find(const AnswerKey& key) const;
  /// The key is not there yet.
  void add(const AnswerKey& key, int64_t place);
  int64_t size() const { return size_; }
  /// As it is written, in as little room as finds quickly: 9.4 bytes a key. It lies in `file`.
  std::span<const std::byte> packed(ScratchFile& file) const;

 private:
  void put(const AnswerKey& key, uint64_t stored);
  void grow(int64_t entries);

  std::string near_;
  std::vector<std::byte> small_;
  std::unique_ptr<ScratchFile> file_;
  std::span<std::byte> bytes_;
  int64_t size_ = 0;
};

}  // namespace sheaf

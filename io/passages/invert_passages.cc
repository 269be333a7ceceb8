#include "io/passages/invert_passages.h"

#include <algorithm>
#include <arrow/util/hashing.h>  // brings xxHash
#include <numeric>

#include "core/base/error.h"
#include "core/text/words.h"

namespace sheaf {
namespace {

/// Different words, numbered from 0 in the order in which they come.
class WordTable {
 public:
  WordTable() : slots_(1 << 16, Slot{0, kFree}) {}

  uint32_t number_of(std::string_view text) {
    const uint64_t hash = XXH3_64bits(text.data(), text.size());
    const auto half = static_cast<uint32_t>(hash >> 32);
    for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (slot.word == kFree) {
        slot = {half, static_cast<uint32_t>(ends_.size())};
        bytes_ += text;
        ends_.push_back(bytes_.size());
        hashes_.push_back(hash);
        if (ends_.size() * 2 > slots_.size()) grow();
        return static_cast<uint32_t>(ends_.size() - 1);
      }
      if (slot.half == half && word(slot.word) == text) return slot.word;
    }
  }

  size_t size() const { return ends_.size(); }
  std::string_view word(uint32_t number) const {
    const size_t begin = number > 0 ? ends_[number - 1] : 0;
    return std::string_view(bytes_).substr(begin, ends_[number] - begin);
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Slot {
    uint32_t half;  // of the hash: words that differ are seldom compared
    uint32_t word;
  };

  void grow() {
    slots_.assign(slots_.size() * 2, Slot{0, kFree});
    for (size_t i = 0; i < hashes_.size(); ++i) {
      size_t at = hashes_[i] & (slots_.size() - 1);
      while (slots_[at].word != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {static_cast<uint32_t>(hashes_[i] >> 32), static_cast<uint32_t>(i)};
    }
  }

  std::vector<Slot> slots_;
  std::vector<size_t> ends_;  // of the words, in bytes_
  std::vector<uint64_t> hashes_;
  std::string bytes_;
};

/// For each word, the passages that have it, as often as they do, in their order.
struct Occurrences {
  std::vector<size_t> ends;  // of each word's, in passages
  std::vector<uint32_t> passages;
};

/// `words`: of all passages, one after the other; `lengths`: how many are of each.
Occurrences count_occurrences(const std::vector<uint32_t>& words, const std::vector<uint32_t>& lengths,
                              size_t different) {
  Occurrences all{std::vector<size_t>(different + 1, 0), std::vector<uint32_t>(words.size())};
  for (const uint32_t word : words) ++all.ends[word + 1];
  for (size_t i = 1; i < all.ends.size(); ++i) all.ends[i] += all.ends[i - 1];
  size_t at = 0;
  for (size_t passage = 0; passage < lengths.size(); ++passage)
    for (const size_t end = at + lengths[passage]; at < end; ++at)
      all.passages[all.ends[words[at]]++] = static_cast<uint32_t>(passage);
  return all;
}

/// Writes the postings of a word; returns how many passages have it.
uint64_t write_postings(std::span<const uint32_t> passages, std::string& to) {
  uint64_t different = 0;
  int64_t before = -1;
  for (size_t at = 0; at < passages.size(); ++different) {
    const uint32_t passage = passages[at];
    uint64_t times = 0;
    for (; at < passages.size() && passages[at] == passage; ++at) ++times;
    append_number(to, static_cast<uint64_t>(passage - before));
    append_number(to, times);
    before = passage;
  }
  return different;
}

uint64_t take_number(std::string_view& from) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (from.empty()) break;
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  fail("the words of passages that wait to be merged cannot be read");
}

std::string_view take_bytes(std::string_view& from, uint64_t bytes) {
  if (bytes > from.size()) fail("the words of passages that wait to be merged are cut short");
  const std::string_view taken = from.substr(0, bytes);
  from.remove_prefix(bytes);
  return taken;
}

}  // namespace

void append_number(std::string& to, uint64_t number) {
  for (; number >= 0x80; number >>= 7) to += static_cast<char>(number | 0x80);
  to += static_cast<char>(number);
}

InvertedPassages invert_passages(const std::vector<std::string>& texts) {
  InvertedPassages inverted;
  WordTable table;
  std::vector<uint32_t> words;
  for (const std::string& text : texts) {
    const size_t before = words.size();
    each_word(text, [&](std::string_view word) { words.push_back(table.number_of(word)); });
    inverted.lengths.push_back(static_cast<uint32_t>(words.size() - before));
  }
  const Occurrences all = count_occurrences(words, inverted.lengths, table.size());
  std::vector<uint32_t> sorted(table.size());
  std::iota(sorted.begin(), sorted.end(), 0u);
  std::ranges::sort(sorted, {}, [&](uint32_t word) { return table.word(word); });
  std::string postings;
  for (const uint32_t word : sorted) {
    const size_t begin = word > 0 ? all.ends[word - 1] : 0;
    postings.clear();
    const uint64_t passages =
        write_postings(std::span(all.passages).subspan(begin, all.ends[word] - begin), postings);
    append_number(inverted.terms, table.word(word).size());
    inverted.terms += table.word(word);
    append_number(inverted.terms, passages);
    append_number(inverted.terms, postings.size());
    inverted.terms += postings;
  }
  return inverted;
}

bool InvertedWords::next() {
  if (left_.empty()) return false;
  word_ = take_bytes(left_, take_number(left_));
  passages_ = take_number(left_);
  postings_ = take_bytes(left_, take_number(left_));
  return true;
}

void InvertedWords::append_postings(std::vector<Posting>& to) const {
  std::string_view postings = postings_;
  uint64_t next = first_;  // one more than the passage before
  for (uint64_t i = 0; i < passages_; ++i) {
    next += take_number(postings);
    to.push_back({static_cast<uint32_t>(next - 1), static_cast<uint32_t>(take_number(postings))});
  }
}

}  // namespace sheaf

#include "io/passages/invert_passages.h"

#include <algorithm>
#include <arrow/util/hashing.h>  // brings xxHash

#include "core/base/error.h"
#include "core/text/words.h"

namespace sheaf {
namespace {

/// The words of a batch of passages and their postings so far.
class WordTable {
 public:
  WordTable() : slots_(1 << 16, kFree) {}

  struct Entry {
    uint64_t hash;
    uint32_t at, bytes;    // of the word
    int64_t passage = -1;  // the last one that has it
    uint32_t times = 0;    // there, not yet among the postings
    uint32_t passages = 0;
    int64_t written = -1;  // the last one among the postings
    std::string postings = {};
  };

  void add(std::string_view word, int64_t passage) {
    Entry& entry = find(word);
    if (entry.passage != passage) {
      flush(entry);
      entry.passage = passage;
      ++entry.passages;
    }
    ++entry.times;
  }

  std::string terms() {
    std::vector<Entry*> sorted;
    for (Entry& entry : entries_) {
      flush(entry);
      sorted.push_back(&entry);
    }
    std::ranges::sort(sorted, {}, [&](const Entry* entry) { return word(*entry); });
    std::string terms;
    for (const Entry* const entry : sorted) {
      append_number(terms, entry->bytes);
      terms += word(*entry);
      append_number(terms, entry->passages);
      append_number(terms, entry->postings.size());
      terms += entry->postings;
    }
    return terms;
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;

  std::string_view word(const Entry& entry) const {
    return std::string_view(bytes_).substr(entry.at, entry.bytes);
  }

  static void flush(Entry& entry) {
    if (entry.times == 0) return;
    append_number(entry.postings, static_cast<uint64_t>(entry.passage - entry.written));
    append_number(entry.postings, entry.times);
    entry.written = entry.passage;
    entry.times = 0;
  }

  Entry& find(std::string_view text) {
    const uint64_t hash = XXH3_64bits(text.data(), text.size());
    for (size_t slot = hash & (slots_.size() - 1);; slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot] == kFree) {
        slots_[slot] = static_cast<uint32_t>(entries_.size());
        entries_.push_back({hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(text.size())});
        bytes_ += text;
        if (entries_.size() * 2 > slots_.size()) grow();
        return entries_.back();
      }
      Entry& entry = entries_[slots_[slot]];
      if (entry.hash == hash && word(entry) == text) return entry;
    }
  }

  void grow() {
    slots_.assign(slots_.size() * 2, kFree);
    for (size_t i = 0; i < entries_.size(); ++i) {
      size_t slot = entries_[i].hash & (slots_.size() - 1);
      while (slots_[slot] != kFree) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = static_cast<uint32_t>(i);
    }
  }

  std::vector<uint32_t> slots_;  // into entries_
  std::vector<Entry> entries_;
  std::string bytes_;
};

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
  for (const std::string& text : texts) {
    const auto passage = static_cast<int64_t>(inverted.lengths.size());
    uint32_t words = 0;
    each_word(text, [&](std::string_view word) {
      table.add(word, passage);
      ++words;
    });
    inverted.lengths.push_back(words);
  }
  inverted.terms = table.terms();
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

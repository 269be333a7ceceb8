#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sheaf {

// An index of passages is one file that is mapped to be read. All numbers are little-endian; sections begin
// at multiples of 8 bytes.
//
//   "sheafpi1"
//   texts      of each passage: its id as JSON, its title, its text
//   postings   of each word: which passages have it and how often
//   lengths    of each passage, in words: 4 bytes each
//   entries    of each passage: where its text lies
//   terms      of each word, in the order of their bytes: where its postings lie
//   words      their bytes
//   about      JSON: what the index was made from
//   tail       256 bytes
//
// What may be large is checked piece by piece where it is read: a text with its entry, the postings of a
// word. The other sections are checked when the file is opened.
//
// The postings of a word with more than kBlock passages begin with a PostingBlock for each kBlock of them.
// Then comes, for every passage in rising order, its distance to the one before it (the first: to passage -1)
// and how often it has the word, as variable-length integers of 7 bits a byte, low ones first.

static_assert(std::endian::native == std::endian::little, "indexes are read as they lie in memory");

constexpr std::string_view kIndexMagic = "sheafpi1";
constexpr std::string_view kAnyIndexMagic = "sheafpi";  ///< of all versions
constexpr uint32_t kBlock = 128;                        ///< postings
constexpr uint32_t kMostPassages = uint32_t{1} << 31;   ///< in an index

struct IndexSection {
  uint64_t at = 0, bytes = 0;
  uint64_t sum = 0;  ///< XXH3 of its bytes; 0 for texts, postings and entries, which have sums of their own
};

struct IndexTail {
  std::array<char, 8> magic;
  uint64_t tail_sum;    ///< XXH3 of all that follows it in the tail
  uint64_t file_bytes;  ///< with the tail
  uint64_t passages;
  uint64_t words;  ///< of all passages together
  uint64_t terms;  ///< different words
  IndexSection texts, postings, lengths, entries, term_entries, term_words, about;
  std::array<uint64_t, 5> none;
};
static_assert(sizeof(IndexTail) == 256);

struct PassageEntry {
  uint64_t at;     ///< from the beginning of the file
  uint32_t bytes;  ///< id, title and text
  uint32_t id_bytes, title_bytes;
  uint32_t sum;  ///< low half of the XXH3 of the fields before it and the bytes
};
static_assert(sizeof(PassageEntry) == 24);

struct TermEntry {
  uint64_t word_at;  ///< in the section of words
  uint64_t at;       ///< of the postings, from the beginning of the file
  uint64_t bytes;    ///< of the postings
  uint32_t word_bytes;
  uint32_t passages;  ///< number of passages with the word
  uint32_t sum;       ///< low half of the XXH3 of the postings
  float most;         ///< at least the word_weight() of the word in any passage
};
static_assert(sizeof(TermEntry) == 40);

struct PostingBlock {
  uint32_t last;  ///< passage of the block
  uint32_t end;   ///< of the block, from the first one's beginning
};

/// XXH3, which finds damage at the speed of memory. No protection against a forger.
uint64_t sum64(std::span<const std::byte> bytes);
uint32_t passage_sum(const PassageEntry& entry, std::span<const std::byte> bytes);

template <class Value>
std::span<const std::byte> bytes_of(const std::vector<Value>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace sheaf

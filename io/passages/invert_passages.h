#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// The words of some passages that follow each other, as they wait to be merged with those of others.
struct InvertedPassages {
  std::vector<uint32_t> lengths;  ///< in words, of each passage
  /// For each word, in the order of their bytes: its length, its bytes, the number of passages that have it,
  /// the bytes of its postings, its postings as in an index, from the first of these passages on. Numbers are
  /// of variable length.
  std::string terms;
};

InvertedPassages invert_passages(const std::vector<std::string>& texts);

void append_number(std::string& to, uint64_t number);

/// Reads what invert_passages() wrote, one word after the other.
class InvertedWords {
 public:
  /// `first`: the number of the first of the passages.
  InvertedWords(std::string_view terms, uint32_t first) : left_(terms), first_(first) {}

  bool next();
  std::string_view word() const { return word_; }

  struct Posting {
    uint32_t passage, times;
  };
  void append_postings(std::vector<Posting>& to) const;

 private:
  std::string_view left_, word_, postings_;
  uint64_t passages_ = 0;
  uint32_t first_;
};

}  // namespace sheaf

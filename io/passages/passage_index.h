#pragma once
#include <atomic>
#include <span>

#include "core/base/error.h"
#include "io/base/mapped_file.h"
#include "io/passages/index_file.h"
#include "io/passages/passage.h"

namespace sheaf {

/// An index that cannot be used, and why: it is made again where its collection is at hand.
class BadIndex : public Error {
 public:
  BadIndex(const std::string& path, std::string_view why)
      : Error(Fault::input,
              fmt::format("{}: {}; remove the file, and the next run makes it again", path, why)),
        reason(why) {}
  std::string reason;  ///< without the path
};

/// BM25 over passages that lie in a file (index_file.h). Any number of threads may search.
class PassageIndex {
 public:
  /// Throws a BadIndex for a file that is damaged, of another version or none of ours.
  explicit PassageIndex(const std::string& path);

  uint32_t passages() const { return static_cast<uint32_t>(tail_.passages); }
  uint64_t terms() const { return tail_.terms; }
  /// What it was made from: {"files": …, "left_out": {"rows", "first"}}.
  const nlohmann::json& about() const { return about_; }
  const std::string& path() const { return file_->path(); }

  struct Found {
    uint32_t passage = 0;  ///< from 0
    double score = 0;      ///< of BM25: the sum over the question's different words, rarest first
  };
  /// The `count` passages with the highest scores, best first, of equal ones the earlier; fewer where fewer
  /// share a word with the question.
  std::vector<Found> search(std::string_view question, size_t count) const;
  /// Of some passages, which must rise.
  std::vector<double> scores(std::string_view question, std::span<const uint32_t> passages) const;

  Passage passage(uint32_t number) const;

 private:
  struct Word {
    const TermEntry* entry;
    double rarity;
  };
  class Postings;

  [[noreturn]] void damaged(std::string_view what) const;
  std::span<const std::byte> part(uint64_t at, uint64_t bytes, std::string_view what) const;
  template <class Value>
  std::span<const Value> section(const IndexSection& section, uint64_t count, std::string_view what) const;
  /// The words of a question that passages have, rarest first.
  std::vector<Word> words_of(std::string_view question) const;
  const TermEntry* find(std::string_view word) const;
  std::string_view word(const TermEntry& entry) const;
  /// Scores of all passages with the word are added, or only to those that are there.
  void add_all(const Word& word, std::vector<Found>& found) const;
  void add_to(const Word& word, std::vector<Found>& found) const;
  double weight(uint32_t passage, uint32_t times) const;

  std::shared_ptr<const MappedFile> file_;
  IndexTail tail_;
  double mean_words_ = 1;
  std::span<const uint32_t> lengths_;
  std::span<const PassageEntry> entries_;
  std::span<const TermEntry> terms_;
  std::string_view words_;
  nlohmann::json about_;
  mutable std::vector<std::atomic<bool>> checked_;  ///< terms whose postings are known to be sound
};

}  // namespace sheaf

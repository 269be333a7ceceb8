#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace sheaf {

/// The Porter stem of a word in lower case, with the extensions that NLTK's PorterStemmer has by default.
std::string porter_stem(std::string word);

/// The length of the longest common subsequence of one list of words with others. 64 cells of the usual table
/// are one machine word (H. Hyyrö, "Bit-parallel LCS-length computation revisited", 2004), and of a row only
/// the cells that change are touched. Memory is linear in both lists.
class CommonSubsequence {
 public:
  explicit CommonSubsequence(const std::vector<std::string>& words);

  size_t length_with(const std::vector<std::string>& others) const;

 private:
  struct Places {
    size_t word;     ///< which 64 of the words
    uint64_t where;  ///< in those
  };
  size_t count_;
  std::unordered_map<std::string, std::vector<Places>> places_;  ///< where a word stands, in order
};

}  // namespace sheaf

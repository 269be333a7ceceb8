#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sheaf {

/// The words of an answer as SQuAD's script compares them: lower case, without punctuation and articles.
std::vector<std::string> answer_tokens(std::string_view text);

/// `text` (lower case) with each whole word a, an or the replaced by a space.
std::string remove_articles(std::string_view text);

/// What two bags of words share; all 0 where that is nothing.
struct TokenOverlap {
  double precision = 0, recall = 0, f1 = 0;
};

/// A bag of words. Comparing two takes as long as the smaller one is large, so that a long prediction is read
/// once and not once for each reference.
class TokenBag {
 public:
  explicit TokenBag(std::vector<std::string> tokens);

  /// Of this one, the prediction, with `wanted`.
  TokenOverlap overlap(const TokenBag& wanted) const;
  double f1(const TokenBag& wanted) const { return overlap(wanted).f1; }

 private:
  std::unordered_map<std::string, size_t> counts_;
  size_t total_;
};

}  // namespace sheaf

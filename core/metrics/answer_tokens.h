#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// The words of an answer as SQuAD's script compares them: lower case, without punctuation and articles.
std::vector<std::string> answer_tokens(std::string_view text);

/// `text` (lower case) with each whole word a, an or the replaced by a space.
std::string remove_articles(std::string_view text);

/// The words with a space between them: the text as those scripts compare it.
std::string joined_tokens(const std::vector<std::string>& tokens);

/// What two bags of words share; all 0 where that is nothing.
struct TokenOverlap {
  double precision = 0, recall = 0, f1 = 0;
};
TokenOverlap token_overlap(std::vector<std::string> predicted, std::vector<std::string> wanted);
double token_f1(std::vector<std::string> predicted, std::vector<std::string> wanted);

}  // namespace sheaf

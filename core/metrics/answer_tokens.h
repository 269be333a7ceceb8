#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// The words of an answer as SQuAD's script compares them: lower case, without punctuation and articles.
std::vector<std::string> answer_tokens(std::string_view text);

/// `text` (lower case) with each whole word a, an or the replaced by a space.
std::string remove_articles(std::string_view text);

/// F1 of two bags of words; 0 where they share none.
double token_f1(std::vector<std::string> predicted, std::vector<std::string> wanted);

}  // namespace sheaf

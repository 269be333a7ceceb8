#pragma once
#include <string>

namespace sheaf {

/// The Porter stem of a word in lower case, with the extensions that NLTK's PorterStemmer has by default.
std::string porter_stem(std::string word);

}  // namespace sheaf

#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sheaf {

/// Documents cut out of a book, with made-up facts hidden in them to ask for: "The {animal} named {name} has
/// {body part} that is {color}." (Parallel Prompting, section 4.1; with `dogs`, "The dog named {name} has fur
/// that is {color}.", Hydragen, appendix D.3).
struct NeedleOptions {
  int64_t count = 8;       ///< documents
  int64_t questions = 64;  ///< of each document
  int64_t length = 256;    ///< of the book's text in each, without the facts
  int64_t shots = 5;       ///< facts whose questions stand answered at the end of the document
  uint64_t seed = 0;
  bool dogs = false;
  /// How long a text is; by default in words.
  std::function<int64_t(const std::string&)> measure;
};

/// The rows of an ask corpus, one a document. `source` names the book in messages. Refuses a book that is too
/// short and more questions than there are facts.
std::vector<nlohmann::ordered_json> make_needles(const std::string& book, const std::string& source,
                                                 const NeedleOptions& options);

}  // namespace sheaf

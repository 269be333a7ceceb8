#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sheaf {

/// A question, or an attribute of a document, that two methods answered differently.
struct Difference {
  std::string id;
  std::string context;  ///< an excerpt
  std::string question;
  std::optional<std::vector<std::string>> references;  ///< nothing: not known
  struct Side {
    std::string answer;
    std::vector<std::pair<std::string, double>> scores;  ///< by the names of the metric
  } first, second;
};

/// Two methods on one dataset with one model.
struct DifferencePair {
  std::string model, dataset, first, second;
  int64_t compared = 0, differing = 0;
  std::vector<Difference> shown;  ///< some of those that differ
};

/// At most `bytes` of `text`: around the first of `wanted` that occurs in it, else from its beginning. Cut
/// between characters, with ellipses where something was cut.
std::string excerpt(const std::string& text, const std::vector<std::string>& wanted, size_t bytes);

/// Side by side for a terminal of so many columns.
std::string differences_text(const DifferencePair& pair, size_t columns);
nlohmann::ordered_json differences_json(const DifferencePair& pair);
std::string differences_html(const std::string& name, const std::vector<DifferencePair>& pairs);

}  // namespace sheaf

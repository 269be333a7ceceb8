#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sheaf {

/// A document and its right values, shown to the model as an earlier turn of the chat.
struct Example {
  std::string document;
  nlohmann::json gold;  ///< attribute to value, null, or a list of accepted values
};

struct Examples {
  std::map<std::string, std::vector<Example>, std::less<>> by_category;
  int32_t positions = std::numeric_limits<int32_t>::max();  ///< positions of the model

  /// Empty where the category has none.
  const std::vector<Example>& of(std::string_view category) const;
};

/// Chooses among examples as they come: at most so many of a category, by the seed and their text only. So
/// the order of the file does not count, and fewer examples are the first of more.
class ExampleChoice {
 public:
  ExampleChoice(int32_t per_category, uint64_t seed) : most_(per_category), seed_(seed) {}

  void add(const std::string& category, Example example);
  /// What was chosen, in the order in which prompts show it.
  std::map<std::string, std::vector<Example>, std::less<>> take();

 private:
  using Rank = std::pair<uint64_t, std::string>;  ///< random, and the document

  int32_t most_;
  uint64_t seed_;
  std::map<std::string, std::map<Rank, nlohmann::json>> chosen_;  ///< gold
};

}  // namespace sheaf

#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/task/record.h"

namespace sheaf {

/// A text as it is; anything else as JSON.
std::string gold_text(const nlohmann::json& gold);

/// One right value as a row of the attribute's type holds it: "10.50" as 10.5, "4 March 2026" as
/// "2026-03-04", "yes" as true, "red, blue" or "[\"red\", \"blue\"]" as a list. Null where `gold` says that
/// there is none: null, empty text, "n/a". Nothing where the type does not hold the value.
std::optional<nlohmann::json> typed_gold(const Attribute& attribute, const nlohmann::json& gold);

/// A gold value as the model should write it, a JSON literal of the attribute's type. `gold`: a value, null,
/// or a list: of the parts of a list attribute, else of accepted values, of which the first counts. Nothing
/// where the attribute's type does not hold the value (typed_gold).
std::optional<std::string> write_value(const Attribute& attribute, const nlohmann::json& gold);

/// Gold values that the type of their attribute does not hold.
class UnreadableGold {
 public:
  void add(const Attribute& attribute, const nlohmann::json& gold);
  int64_t count() const { return count_; }
  /// "2 gold values that …, such as "soon" of "Date" (a date)"; empty where there are none. `fate`: what
  /// becomes of them.
  std::string notice(const std::string& path, std::string_view fate) const;

 private:
  int64_t count_ = 0;
  std::string first_;  ///< as it is shown
};

/// Makes the values of spans those that decoding can copy: as the document writes them. One that it does not
/// hold is erased from `gold`, {attribute: value or list}. Returns how many were.
int64_t bind_gold(const Category& category, const Record& record, nlohmann::json& gold);

/// Attributes that gold answers name and their category does not have: typos, as a rule.
class UnknownNames {
 public:
  /// `gold`: attribute to anything.
  void add(const Category& category, const nlohmann::json& gold);
  /// What to tell the user of the answers of `path`; empty where every name is known.
  std::string notice(const std::string& path) const;

 private:
  int64_t values_ = 0;
  std::vector<std::string> first_;  ///< as they are shown
  bool more_ = false;
};

/// A document and its right values, or a context and the right answer to a question, shown to the model as an
/// earlier turn of the chat.
struct Example {
  std::string document;
  nlohmann::json
      gold;  ///< attribute to value, null, or a list of accepted values; of a question: ShownQuestion
};

/// A question of an example and its answer, as Example::gold holds it.
struct ShownQuestion {
  uint64_t lot = 0;  ///< of several questions about one context the one with the lowest is shown
  std::string text;
  std::vector<std::string> options = {};
  std::optional<std::string> answer = {};  ///< nothing: null
};
nlohmann::json shown_json(const ShownQuestion& question);
ShownQuestion read_shown(const nlohmann::json& gold);

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

#pragma once
#include <map>
#include <string_view>
#include <vector>

#include "io/base/json_file.h"

namespace sheaf {

/// What the first records hold in a column, or under a name of "gold".
struct ColumnFacts {
  std::string name;
  int64_t given = 0;  ///< values that are not null; an empty text is
  int64_t numbers = 0, whole_numbers = 0, booleans = 0, dates = 0, urls = 0, lists = 0, objects = 0;
  size_t bytes = 0, longest = 0;
  std::map<std::string, int64_t> values = {};  ///< how often each, the scalars
  int64_t object_lists = 0;                    ///< lists that hold objects
  std::vector<ColumnFacts> fields = {};        ///< of objects, also of those in lists

  void add(const nlohmann::json& value);
  /// A gold value: an empty list is none, and a list of one value is that value.
  void add_gold(const nlohmann::json& value);
  /// Whether it is proposed as an object or a list of objects: most of its values are such, or half of them.
  bool nested() const { return objects + object_lists > 0 && 2 * (objects + object_lists) >= given; }
  /// What of a value is of another kind than the proposed one: "variants must be a list of objects, not a
  /// text"; empty: nothing.
  std::string strange(const nlohmann::json& value, const std::string& path) const;
  bool scalar() const { return lists == 0 && objects == 0; }
  double mean_bytes() const { return given ? static_cast<double>(bytes) / static_cast<double>(given) : 0; }
  /// Whether its values are words: not numbers, dates or links, if any are there.
  bool is_text() const;
  /// Whether no two records have the same value.
  bool is_unique() const { return scalar() && static_cast<int64_t>(values.size()) == given; }
  /// Whether its name is one of `words`, which spaces separate, whatever its capitals and separators.
  bool is_called(std::string_view words) const;
  /// What follows the name in an entry of a schema: "type: number". `depth`: 1 for an attribute of a
  /// category.
  std::string schema_type(int32_t depth = 1) const;

 private:
  void add_fields(const nlohmann::json& object);
  std::string nested_type(int32_t depth) const;
};

/// Whether a text is written as a number: 0042 and +7 are codes.
bool is_written_number(std::string_view text);

/// The text of a scalar, as a person would look for it; empty: none.
std::string scalar_text(const nlohmann::json& value);

/// A scalar of YAML, quoted where needed.
std::string yaml_word(const std::string& text);

}  // namespace sheaf

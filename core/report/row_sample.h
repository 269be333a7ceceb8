#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/task/record.h"
#include "core/task/row.h"

namespace sheaf {

/// A few rows with the text they were made from, for people to look at: those whose id and text have the
/// smallest hashes. So it does not depend on the order of the rows, and samples of shards add up to that of
/// the whole.
class RowSample {
 public:
  void add(const Record& record, const Row& row);
  /// [{id, category, text, values: [{name, value, note}]}]. The id is JSON in a text; a value is a text or
  /// null.
  nlohmann::ordered_json json() const;

 private:
  std::map<uint64_t, nlohmann::ordered_json> rows_;  ///< by hash
};

/// Adds the sample of another session or shard.
void add_row_sample(const nlohmann::ordered_json& from, nlohmann::ordered_json& to);

/// The most frequent of many values, in bounded memory (the space-saving algorithm): a value that is more
/// than one in 32 is always among them.
class CommonValues {
 public:
  void add(std::string_view value);
  /// The first few, the most frequent first: [{value, rows}]; `rows` is counted at least, and exactly where
  /// there were at most 32 values.
  nlohmann::ordered_json json() const;

 private:
  struct Entry {
    std::string value;
    int64_t count = 0, extra = 0;  ///< extra: of values that were there before it
  };
  std::vector<Entry> entries_;
};

/// Leaves the first few, the most frequent first.
void keep_common(nlohmann::ordered_json& list);

}  // namespace sheaf

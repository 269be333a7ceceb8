#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

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

/// Adds those of another session or shard.
void add_common_values(const nlohmann::ordered_json& from, nlohmann::ordered_json& to);

}  // namespace sheaf

#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sheaf {

/// Gathers the attributes that the gold values of an extract dataset name, category by category, and writes
/// them as a schema file: every attribute with its commonest values as its description, and how often it has
/// a value as a comment.
class SchemaWriter {
 public:
  void add(const nlohmann::ordered_json& row);
  /// `source` is named in the file's first line.
  std::string text(const std::string& source) const;

 private:
  struct Attribute {
    std::string name;
    int64_t found = 0;                      // rows that hold a value for it
    std::map<std::string, int64_t> values;  // how often each
  };
  struct Category {
    int64_t rows = 0;
    std::vector<Attribute> attributes;  // in the order of their first appearance
  };
  std::map<std::string, Category> categories_;
};

}  // namespace sheaf

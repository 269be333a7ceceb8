#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sheaf {

/// The lines of a JSON text on which its values stand; of a member of an object, that of its key.
class JsonLines {
 public:
  /// `root`: what was read from `text`, in which no object says a key twice.
  JsonLines(std::string_view text, const nlohmann::ordered_json& root);

  /// Counted from 1. `value` is a part of the root; 0: it is not.
  int32_t of(const nlohmann::ordered_json& value) const;

 private:
  void walk(const nlohmann::ordered_json& value);
  void skip_gap();
  void skip_text();

  std::string_view left_;
  int32_t line_ = 1;
  std::unordered_map<const nlohmann::ordered_json*, int32_t> lines_;
};

/// A JSON file, for messages about its values.
struct JsonFile {
  std::string path;
  JsonLines lines;
};

}  // namespace sheaf

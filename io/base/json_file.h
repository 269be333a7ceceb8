#pragma once
#include "core/base/error.h"
#include "core/text/json_reader.h"

namespace sheaf {

using nlohmann::ordered_json;  // keys in the order in which they are written

// Callers of read_json(), each with what its text may hold and how it tells of trouble.

/// A record of a corpus or a dataset. Throws a BadText where it is not UTF-8, not JSON, or exceeds the
/// limits.
template <class Json = nlohmann::json>
Json parse_record(std::string_view text, const JsonLimits& limits);

/// A record that is an object. Only the values of the top-level keys that `keep` picks are built, which saves
/// the memory of all others. Throws a BadText.
nlohmann::json parse_json_line(std::string_view line, std::function<bool(const std::string&)> keep = {});

/// Calls `use` with each object of a file of JSON lines and its place, "file:3"; blank lines are passed over.
/// Refuses a line that cannot be read, and one of which `use` throws a BadText.
void each_json_line(const std::string& path,
                    const std::function<void(const nlohmann::json& row, const std::string& place)>& use,
                    const std::function<bool(const std::string&)>& keep = {});

/// Parses untrusted JSON: refuses text that is not JSON, nests deeper than `depth` or says a key twice.
/// `source` names the file in messages.
nlohmann::json parse_json(std::string_view text, const std::string& source, size_t depth = 16);

/// The object in a file of at most `largest` bytes.
nlohmann::json read_json_object(const std::string& path, size_t largest);

/// The fields of a JSON object, read with a type in mind. A null counts as missing.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string source)
      : object_(object), source_(std::move(source)) {}

  const std::string& source() const { return source_; }
  bool has(const char* key) const { return find(key) != nullptr; }
  bool says_null(const char* key) const { return object_.contains(key) && !has(key); }
  /// Null where missing.
  const nlohmann::json* find(const char* key) const;

  // Each refuses a missing field and a value of another type; the second form gives `fallback` for a missing
  // one.
  int64_t integer(const char* key) const;
  int64_t integer(const char* key, int64_t fallback) const { return has(key) ? integer(key) : fallback; }
  double number(const char* key) const;
  double number(const char* key, double fallback) const { return has(key) ? number(key) : fallback; }
  bool boolean(const char* key, bool fallback) const;
  std::string text(const char* key) const;
  std::string text(const char* key, const std::string& fallback) const {
    return has(key) ? text(key) : fallback;
  }

 private:
  const nlohmann::json& need(const char* key) const;
  [[noreturn]] void wrong(const char* key, const char* wanted) const;

  const nlohmann::json& object_;
  std::string source_;
};

/// "a number", "a list", …
template <class Json>
std::string_view kind_of(const Json& value) {
  return value.is_number()    ? "a number"
         : value.is_string()  ? "text"
         : value.is_boolean() ? "a boolean"
         : value.is_array()   ? "a list"
         : value.is_null()    ? "null"
                              : "an object";
}

/// A JSON value cut short for a message.
std::string shown_json(const nlohmann::json& value);

}  // namespace sheaf

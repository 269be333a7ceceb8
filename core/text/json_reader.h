#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sheaf {

/// What JSON from outside may hold. Many uses of a parsed value recurse, so depth must be bounded first.
struct JsonLimits {
  size_t depth = 32;            ///< of lists and objects inside each other
  int64_t values = 10'000'000;  ///< kept, lists and objects included
  bool unique_keys = false;     ///< refuse a key that an object says twice; otherwise the last one counts
  std::function<bool(const std::string& key)> keep = {};  ///< members of the outermost object; empty: all
};

/// Parses JSON that comes from outside: files, corpora, what a model wrote. Takes time linear in the text.
/// Where the text is not JSON or exceeds the limits, the value is discarded (`is_discarded()`) and `trouble`
/// says why. `Json` is nlohmann::json or nlohmann::ordered_json.
template <class Json = nlohmann::json>
Json read_json(std::string_view text, const JsonLimits& limits = {}, std::string* trouble = nullptr);

extern template nlohmann::json read_json(std::string_view, const JsonLimits&, std::string*);
extern template nlohmann::ordered_json read_json(std::string_view, const JsonLimits&, std::string*);

/// Why a text is not JSON, and where: "not valid JSON at column 8: expected a comma or }, found a number".
/// The line is told where the text has several. `read`: how many bytes the library had read when it gave up.
std::string describe_json_error(std::string_view text, size_t read, const nlohmann::json::exception& error);

}  // namespace sheaf

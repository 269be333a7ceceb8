#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sheaf {

/// Why a text is not JSON, and where: "not valid JSON at column 8: expected a comma or }, found a number".
/// The line is told where the text has several. `read`: how many bytes the library had read when it gave up.
std::string describe_json_error(std::string_view text, size_t read, const nlohmann::json::exception& error);

}  // namespace sheaf
